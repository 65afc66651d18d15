"""A query that a person writes could tell another team's rows letter by letter: it takes the right to see them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.http import HttpResponseBase
from django.test import Client

from lakehub.accounts.models import Role, User
from lakehub.catalog.models import Dataset, LineageEdge
from lakehub.kernel.errors import Refused
from quality.backtest.run import run_backtest
from quality.generation.business_metrics import MetricInput, set_metric
from quality.generation.custom_tests import write_custom_test
from tests import factories as make
from tests.factories import NOW

pytestmark = pytest.mark.django_db

COLUMNS = [{"name": name, "type": "string", "nullable": True} for name in ("id", "tailnum", "flight_date")]
LETTER = "SELECT max(unicode(substr(tailnum, 1, 1))) FROM"
OTHERS = [
    f"query(this, '{LETTER} salaries') < 0",
    f"query(this, '{LETTER} this JOIN salaries USING (id)') < 0",
    f"query(salaries, '{LETTER} this') < 0",
    f"query(upstream, '{LETTER} this') < 0",
    f"before(query(salaries, '{LETTER} this'), 7d) < 0",
]
OPEN = [f"query(this, '{LETTER} this') < 0", f"query(this, '{LETTER} flights') < 0", "rows(this) <= rows(salaries)"]


@pytest.fixture
def flights() -> Dataset:
    flights = make.dataset("flights", columns=COLUMNS, team=make.team("flight-ops"))
    salaries = make.dataset("salaries", columns=COLUMNS, team=make.team("hr"))
    LineageEdge.objects.create(upstream=salaries, downstream=flights, one_to_one=True)
    return flights


@pytest.fixture
def ann(flights: Dataset) -> User:
    ann = make.user("ann")
    make.member(ann, flights.team, Role.OWNER)
    return ann


def write(dataset: Dataset, expression: str, author: User | None) -> None:
    write_custom_test(
        dataset, key="spy", title="Spy", expression=expression, actor="ann", author=author, gating=False, now=NOW
    )


@pytest.mark.parametrize("expression", OTHERS)
def test_a_query_over_another_teams_rows_is_written_by_who_may_see_them(
    flights: Dataset, ann: User, expression: str
) -> None:
    for attempt in (
        lambda: write(flights, expression, ann),
        lambda: run_backtest(flights, expression=expression, author=ann, now=NOW),
    ):
        with pytest.raises(Refused, match=r"reads rows of salaries: .* viewer or owner or on call or admin of team hr"):
            attempt()
    make.member(ann, make.team("hr"), Role.VIEWER)
    write(flights, expression, ann)


@pytest.mark.parametrize("expression", OPEN)
def test_ones_own_rows_and_the_counts_of_all_are_open(flights: Dataset, ann: User, expression: str) -> None:
    write(flights, expression, ann)


@pytest.mark.parametrize("expression", OTHERS)
def test_the_operator_and_superusers_may(flights: Dataset, expression: str) -> None:
    write(flights, expression, None)
    write(flights, expression, make.user("root", is_superuser=True))


def test_a_metric_likewise(flights: Dataset, ann: User) -> None:
    for sql, second in ((f"{LETTER} salaries", ""), (f"{LETTER} this", f"{LETTER} salaries")):
        metric = MetricInput("spy", sql, second, low=0)
        with pytest.raises(Refused, match="reads rows of salaries"):
            set_metric(flights, metric, actor="ann", author=ann, now=NOW)
    make.member(ann, make.team("hr"), Role.VIEWER)
    set_metric(flights, metric, actor="ann", author=ann, now=NOW)


def test_every_door_asks(flights: Dataset, ann: User, client: Client) -> None:
    client.force_login(ann)
    expression, sql = OTHERS[0], f"{LETTER} salaries"
    refusal = "The query reads rows of salaries"
    metric = {"name": "spy", "dataset": "flights", "team": "flight-ops", "sql": sql, "low": 0}
    test = {"key": "spy", "title": "Spy", "expression": expression}
    for address, body in (
        ("/api/v1/datasets/flights/backtest", {"expression": expression}),
        ("/api/v1/datasets/flights/tests", test),
        ("/api/v1/metrics", metric),
    ):
        answer: HttpResponseBase = client.post(address, json.dumps(body), content_type="application/json")
        assert (answer.status_code, refusal in answer.content.decode()) == (422, True), address  # type: ignore[attr-defined]
    pages: tuple[tuple[str, dict[str, Any]], ...] = (
        ("/datasets/flights/new-test", test),
        ("/datasets/flights/new-test", {**test, "act": "backtest"}),
        ("/new-metric", metric),
    )
    for address, body in pages:
        page = client.post(address, body)
        assert refusal in page.content.decode(), address


def test_a_token_sees_the_rows_of_its_team_only(flights: Dataset, ann: User) -> None:
    make.member(ann, make.team("hr"), Role.VIEWER)
    ann.token_team = flights.team
    with pytest.raises(Refused, match="reads rows of salaries"):
        write(flights, OTHERS[0], ann)
