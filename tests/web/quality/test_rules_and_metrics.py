"""Rules and metrics: set over REST, tested at once, gone with their tests; and what is proposed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from lakehub import wiring
from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.models import LineageEdge
from lakehub.kernel.errors import Refused
from quality.generation import business_metrics, rule_suggestions, rules
from quality.generation.rule_suggestions import suggest_rules
from quality.measuring.table_bindings import TableBindings
from quality.models import GenerationStatus, QualityTest, SkippedCheck, Unit
from tests import factories
from tests.factories import NOW
from tests.web.quality.conftest import DAYS, World

RULES, METRICS = "/api/v1/datasets/flights/rules", "/api/v1/metrics"
KNOWN = {"kind": "nulls", "column": "tailnum", "parameters": {"share": "1%"}}
PUNCTUAL = {"name": "flights-a-day", "dataset": "flights", "sql": "SELECT count(*) FROM this", "low": 1}


@pytest.fixture(autouse=True)
def at_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring.clock, "now", lambda: NOW)


@pytest.fixture
def owner(world: World) -> Client:
    person = factories.user("ann")
    factories.member(person, world.flights.team, Role.OWNER)
    client = Client()
    client.force_login(person)
    return client


def send(client: Client, address: str, expect: int = 201, **fields: Any) -> dict[str, Any]:
    answer = client.post(address, fields, content_type="application/json")
    assert answer.status_code == expect, answer.content
    reply: dict[str, Any] = answer.json()
    return reply


def live(world: World) -> set[str]:
    return set(
        QualityTest.objects.filter(dataset=world.flights, retired_at=None, check_name__in=CHECKS).values_list(
            "key", flat=True
        )
    )


CHECKS = ("column", "dimension", "metric", "anomaly")


def test_a_rule_has_its_test_at_once_and_takes_it_along(world: World, owner: Client) -> None:
    world.monitored()
    made = send(owner, RULES, **KNOWN)
    assert (made["test"], made["expression"]) == ("rule:tailnum.nulls", "nulls(this.tailnum) / rows(this) < 1%")
    assert live(world) == {"rule:tailnum.nulls"}
    world.run(NOW)
    assert world.outcomes("rule:tailnum.nulls") == dict.fromkeys(DAYS, "pass")
    changed = send(owner, RULES, **{**KNOWN, "parameters": {"share": "2%"}})
    version = world.test("rule:tailnum.nulls").version
    assert changed["id"] == made["id"]
    assert version is not None
    assert (version.number, version.because) == (2, "tier 1, rule tailnum.nulls")
    assert owner.delete(f"{RULES}/{made['id']}").status_code == 204
    assert live(world) == set()
    assert [entry.action for entry in AuditEntry.objects.order_by("pk")] == ["set rule", "set rule", "remove rule"]


def test_a_rule_that_is_switched_off_has_no_test(world: World, owner: Client) -> None:
    send(owner, RULES, **KNOWN, enabled=False)
    assert live(world) == set()
    assert [rule["enabled"] for rule in owner.get(RULES).json()["results"]] == [False]


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        ({"kind": "nuls", "column": "tailnum"}, "kind", "There is no kind of rule `nuls`. Did you mean `nulls`?"),
        ({"kind": "nulls", "column": "tialnum"}, "column", "flights has no column `tialnum`. Did you mean `tailnum`?"),
        ({"kind": "nulls", "column": "id", "by": "tialnum"}, "by", "Did you mean `tailnum`?"),
        ({"kind": "range", "column": "id", "parameters": {"low": 1}}, "high", "`high` is missing."),
        (
            {"kind": "referential", "column": "id", "parameters": {"dataset": "plane"}},
            "parameters",
            "There is no dataset `plane`",
        ),
        ({"kind": "pattern", "column": "id", "parameters": {"pattern": "(a"}}, "parameters", "(a"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_by_field(
    world: World, owner: Client, fields: dict[str, Any], field: str, why: str
) -> None:
    refused = send(owner, RULES, expect=422, **fields)
    assert why in refused["error"]["fields"][field]
    assert not live(world)


def test_who_may_not_change_a_dataset_may_not_set_rules(world: World) -> None:
    stranger = Client()
    stranger.force_login(factories.user("eve"))
    send(stranger, RULES, expect=403, **KNOWN)
    send(stranger, METRICS, expect=403, **PUNCTUAL)
    assert stranger.get(f"{RULES}/proposals").status_code == 403


def test_a_rule_by_a_column_is_a_dimension_test_that_names_its_worst_group(world: World, owner: Client) -> None:
    world.monitored()
    send(owner, RULES, kind="accepted", column="tailnum", parameters={"values": ["N0", "N1", "N2"]}, by="tailnum")
    world.run(NOW)
    unit = world.unit("rule:tailnum.accepted.by.tailnum", DAYS[0])
    assert unit.latest_outcome == "fail"
    assert [group["name"] for group in unit.detail["groups"]["failing"]] == ["N3", "N4", "N5", "N6"]


def test_a_rule_whose_column_is_gone_is_listed_and_costs_no_other(world: World) -> None:
    world.planned()
    for column in ("tailnum", "id"):
        rules.set_rule(world.flights, kind="nulls", column=column, actor="ann", now=NOW)
    world.flights.columns = [described for described in world.flights.columns if described["name"] != "tailnum"]
    world.flights.save()
    rules.regenerate(world.flights, now=NOW)
    assert "has no column `tailnum`" in GenerationStatus.objects.get(dataset=world.flights).problem
    assert "rule:id.nulls" in live(world)


def test_a_metric_has_its_standard_tests(world: World, owner: Client) -> None:
    world.monitored()
    made = send(owner, METRICS, **PUNCTUAL, second_sql="SELECT sum(1) FROM this", week_over_week="20%", anomaly=True)
    assert (made["dataset"], made["team"], made["inputs"]) == ("flights", "flight-ops", [])
    tests = {
        f"metric:flights-a-day.{name}" for name in ("freshness", "bounds", "week_over_week", "agreement", "anomaly")
    }
    assert live(world) == tests
    assert owner.delete(f"{METRICS}/flights-a-day").status_code == 204
    assert live(world) == set()


def test_a_metric_knows_what_it_reads(world: World, owner: Client) -> None:
    factories.dataset("planes")
    sql = "SELECT count(*) FROM this JOIN planes USING (tailnum)"
    assert send(owner, METRICS, **{**PUNCTUAL, "sql": sql})["inputs"] == ["planes"]
    expression = QualityTest.objects.get(key="metric:flights-a-day.freshness").version.expression  # type: ignore[union-attr]
    assert expression == "freshness(this) < 2h and freshness(planes) < 4h"


@pytest.mark.parametrize(
    ("fields", "field", "why"),
    [
        ({"name": "Flights a day"}, "name", "small letters"),
        ({"sql": "DELETE FROM this"}, "sql", "One SELECT is wanted, not DELETE"),
        ({"sql": "SELECT count(*) FROM plane"}, "sql", "There is no dataset `plane`. Did you mean `planes`?"),
        (
            {
                "second_sql": "SELECT 1 FROM (",
            },
            "second_sql",
            "cannot be understood",
        ),
        ({"week_over_week": "0.2"}, "week_over_week", "write it in percent"),
        ({"low": 5, "high": 1}, "low", "is not below the high bound"),
    ],
)
def test_a_metric_that_makes_no_sense_is_refused_by_field(
    world: World, owner: Client, fields: dict[str, Any], field: str, why: str
) -> None:
    factories.dataset("planes")
    assert why in str(send(owner, METRICS, expect=422, **{**PUNCTUAL, **fields})["error"]["fields"][field])


@pytest.mark.parametrize(("field", "bound"), [("low", math.nan), ("high", math.nan), ("high", math.inf)])
def test_the_bounds_of_a_metric_are_finite(world: World, field: str, bound: float) -> None:
    """JSON has no such numbers, forms do."""
    metric = replace(business_metrics.MetricInput("late", "SELECT count(*) FROM this"), **{field: bound})
    with pytest.raises(Refused) as caught:
        business_metrics.set_metric(world.flights, metric, actor="ann", now=NOW)
    assert "is no finite number" in caught.value.fields[field]


def test_a_metric_of_another_dataset_is_not_taken_over(world: World, owner: Client) -> None:
    send(owner, METRICS, **PUNCTUAL)
    other = factories.dataset("weather", team=world.flights.team)
    send(owner, METRICS, expect=409, **{**PUNCTUAL, "dataset": other.name})


def test_rules_are_proposed_from_the_last_complete_partition_in_one_scan(make_world: Callable[..., World]) -> None:
    world = make_world().monitored()
    rules.set_rule(world.flights, kind="nulls", column="id", actor="ann", now=NOW)
    proposal = suggest_rules(world.flights, now=NOW)
    assert (proposal.partition, proposal.rows, proposal.data_center) == ("2026-11-16", 1000, "dc1")
    proposed = {(suggestion.rule.kind, suggestion.rule.column): suggestion for suggestion in proposal.suggestions}
    assert ("nulls", "id") not in proposed
    assert proposed["accepted", "tailnum"].rule.parameters == {"values": [f"N{number}" for number in range(7)]}
    assert proposed["nulls", "tailnum"].evidence == "1,000 of 1,000"
    assert {suggestion.rule.column for suggestion in proposal.suggestions} == {"tailnum"}, (
        "flight_date says what was looked at"
    )
    # One fused scan, and the values of two columns of texts.
    assert proposal.scans <= 3
    for suggestion in proposal.suggestions:
        rules.check_rule(world.flights, suggestion.rule)


def test_few_other_tables_are_looked_into_and_neighbours_first(
    make_world: Callable[..., World], django_assert_max_num_queries: Any
) -> None:
    world = make_world().monitored()
    here = world.copy()
    for number in range(12):
        other = factories.dataset(f"other{number:02}", copies=("dc1",), primary_key=["tailnum"], ingested=True)
    factories.dataset("elsewhere", copies=("dc2",), primary_key=["tailnum"])
    LineageEdge.objects.create(upstream=other, downstream=world.flights)
    columns = [{"name": "tailnum", "type": "string"}]
    with django_assert_max_num_queries(3):
        keyed = rule_suggestions._keyed_tables(here, TableBindings(here), columns)
    assert [name.dataset for name in keyed] == ["other11", "other00", "other01", "other02", "other03"]


def test_what_is_proposed_is_told_over_rest(world: World, owner: Client) -> None:
    world.monitored()
    answer = owner.get(f"{RULES}/proposals", {"dc": "dc2"})
    assert answer.status_code == 200
    assert {"kind", "column", "parameters", "expression", "title", "evidence", "why"} == set(
        answer.json()["proposals"][0]
    )
    assert "Did you mean `dc2`" in owner.get(f"{RULES}/proposals", {"dc": "dc3"}).json()["error"]["message"]


def test_a_metric_is_measured_by_its_query_and_a_bad_one_is_an_error(world: World) -> None:
    """Each query is a process of its own: two days are enough."""
    world.monitored()
    business_metrics.set_metric(
        world.flights, business_metrics.MetricInput("flights", "SELECT count(*) FROM this", low=1), actor="ann", now=NOW
    )
    business_metrics.set_metric(
        world.flights, business_metrics.MetricInput("odd", "SELECT max(nothing) FROM this", low=1), actor="ann", now=NOW
    )
    keys = ("metric:flights.bounds", "metric:odd.bounds")
    chosen = [world.unit(key, DAYS[0]).pk for key in keys]
    Unit.objects.exclude(pk__in=chosen).update(due_at=None)
    world.run(NOW)
    good, bad = (world.unit(key, DAYS[0]) for key in keys)
    assert (good.latest_outcome, good.detail["observed"], good.threshold) == ("pass", "1,000", ">= 1")
    assert bad.latest_outcome == "error"


def test_a_rule_that_cannot_be_generated_is_refused_before_it_is_stored(world: World) -> None:
    with pytest.raises(Refused):
        rules.set_rule(world.flights, kind="drift", column="nothing", actor="ann", now=NOW)
    assert not world.flights.column_rules.exists()
    assert not SkippedCheck.objects.filter(check_name="column").exists()
