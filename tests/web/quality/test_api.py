"""Quality over REST, on the command line and in the console."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from lakehub.accounts.models import Role
from quality.models import Lane, QualityTest, Unit
from tests import factories as make
from tests.factories import NOW
from tests.web.quality.conftest import DAYS, World

RUN = "/api/v1/datasets/flights/run"
TESTS = "/api/v1/datasets/flights/tests"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehub.clock.now", lambda: NOW)


@pytest.fixture
def owner(monitored_world: World, client: Client) -> Client:
    person = make.user("ines")
    make.member(person, monitored_world.flights.team, Role.OWNER)
    client.force_login(person)
    return client


@pytest.fixture
def viewer(monitored_world: World) -> Client:
    viewer = Client()
    viewer.force_login(make.user("vera"))
    return viewer


def test_the_tests_of_a_dataset_are_listed(owner: Client) -> None:
    listed = owner.get(TESTS).json()["results"]
    assert [test["key"] for test in listed] == [
        "completeness",
        "sample",
        "volume",
        "bloom@dc1",
        "bloom@dc2",
        "difference@dc1",
        "difference@dc2",
        "row_count@dc1",
        "row_count@dc2",
        "duplicates",
        "freshness",
    ]
    assert listed[2]["flattened"] == "gt(rows(this), 0)"
    assert (listed[0]["sustain"], listed[0]["because"]) == (1800.0, "tier 1, rows map one to one to upstream")


def test_a_test_is_written_checked_and_retired(owner: Client) -> None:
    body = {"key": "tails", "title": "Tail numbers", "expression": "null_share(this.tailnum) < 1%"}
    checked = owner.post(f"{TESTS}?check=1", body, content_type="application/json")
    assert checked.json()["flattened"] == "lt(div(nulls(this.tailnum), rows(this)), 1%)"
    assert not QualityTest.objects.filter(key="tails").exists()
    assert owner.post(TESTS, body, content_type="application/json").status_code == 201
    assert owner.get(f"{TESTS}/tails").json()["version"] == 1
    assert owner.delete(f"{TESTS}/tails").status_code == 204
    assert owner.get(f"{TESTS}/tails").status_code == 404


def test_a_bad_expression_is_refused_with_its_place(owner: Client) -> None:
    body = {"key": "tails", "title": "t", "expression": "null_share(this.tialnum) < 1%"}
    refused = owner.post(TESTS, body, content_type="application/json")
    assert refused.status_code == 422
    assert "Did you mean `tailnum`?" in refused.json()["error"]["fields"]["expression"]
    assert "line 1, column 1" in refused.json()["error"]["message"]


def test_a_generated_test_cannot_be_deleted(owner: Client) -> None:
    refused = owner.delete(f"{TESTS}/duplicates")
    assert (refused.status_code, "is generated" in refused.json()["error"]["message"]) == (422, True)


@pytest.mark.parametrize(
    ("path", "body"), [(RUN, {}), (TESTS, {"key": "a", "title": "a", "expression": "rows(this) > 1"})]
)
def test_a_viewer_changes_nothing(viewer: Client, monitored_world: World, path: str, body: dict[str, str]) -> None:
    assert viewer.post(path, body, content_type="application/json").status_code == 403


def test_units_are_made_due_ahead_of_everything(owner: Client) -> None:
    body = {
        "tests": ["duplicates"],
        "data_center": "dc2",
        "start": f"{DAYS[1]}T12:00:00Z",
        "end": f"{DAYS[1]}T13:00:00Z",
    }
    answer = owner.post(RUN, body, content_type="application/json")
    assert (answer.status_code, answer.json()) == (202, {"units": 1})
    unit = Unit.objects.get(lane=Lane.REQUESTED)
    assert (unit.due_at, unit.test.key) == (NOW, "duplicates")


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ({"tests": ["duplicate"]}, 404, "Did you mean `duplicates`?"),
        ({"data_center": "dc9"}, 404, "has no copy in `dc9`"),
        ({"start": "2026-11-16T00:00:00Z", "end": "2026-11-15T00:00:00Z"}, 422, "is not after its start"),
    ],
)
def test_what_cannot_be_run_is_named(owner: Client, body: dict[str, object], code: int, says: str) -> None:
    answer = owner.post(RUN, body, content_type="application/json")
    assert (answer.status_code, says in answer.json()["error"]["message"]) == (code, True)


def test_units_and_results_are_listed_in_few_queries(owner: Client, django_assert_max_num_queries: object) -> None:
    with django_assert_max_num_queries(7):  # type: ignore[operator]
        units = owner.get("/api/v1/datasets/flights/units?verdict=pass&dc=dc1&test=duplicates").json()["results"]
    assert len(units) == 3
    results = owner.get(f"/api/v1/units/{units[0]['id']}/results").json()["results"]
    assert [(row["outcome"], row["trigger"]) for row in results] == [("pass", "baseline")]
    assert owner.get("/api/v1/datasets/flights/units?verdict=good").status_code == 422


def test_skipped_checks_are_listed(owner: Client) -> None:
    listed = owner.get("/api/v1/datasets/flights/skipped").json()["results"]
    assert [(skipped["check_name"], skipped["mendable"]) for skipped in listed] == [
        ("null_keys", False),
        ("repeated_keys", False),
    ]


def test_an_expression_has_an_end(owner: Client) -> None:
    long = {"expression": "rows(this) > " + "1" * 4000}
    refused = owner.post("/api/v1/datasets/flights/expression", long, content_type="application/json")
    assert (refused.status_code, list(refused.json()["error"]["fields"])) == (400, ["expression"])


def test_an_expression_is_explained(owner: Client) -> None:
    answer = owner.post(
        "/api/v1/datasets/flights/expression", {"expression": "duplicates(this) < 1%"}, content_type="application/json"
    )
    assert answer.json()["readable"] == "repeated(this, id, flight_date) / rows(this) < 1%"


def test_the_command_runs_tests_and_prints_them(monitored_world: World) -> None:
    out = StringIO()
    call_command("run_tests", "flights", "--test", "completeness", "--dc", "dc1", "--json", stdout=out)
    rows = json.loads(out.getvalue())
    assert [(row["partition"], row["outcome"], row["behind"]) for row in rows] == [
        (day, "pass", "1,000 of 1,000") for day in DAYS
    ]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("flihgts",), "Did you mean `flights`?"),
        (("flights", "--test", "dup"), "has no test `dup`"),
        (("flights", "--from", "16.11.2026"), "expected the form %Y-%m-%d"),
        (("flights", "--from", DAYS[1], "--to", DAYS[0]), "is not after its start"),
    ],
)
def test_the_command_names_what_it_cannot_run(monitored_world: World, args: tuple[str, ...], says: str) -> None:
    with pytest.raises(CommandError) as caught:
        call_command("run_tests", *args)
    assert says in str(caught.value)


def test_the_command_explains_an_expression(monitored_world: World) -> None:
    out = StringIO()
    call_command("explain_test", "flights", "rows(this@dc2) / rows(upstream) > 50%", stdout=out)
    assert "stored    gt(div(rows(this@dc2), rows(upstream)), 50%)" in out.getvalue()
    assert "measures  rows() of this@dc2, partition" in out.getvalue()


@pytest.mark.parametrize("page", ["qualitytest", "unit", "result", "flip", "skippedcheck", "generationstatus"])
def test_the_console_lists_everything(admin_client: Client, monitored_world: World, page: str) -> None:
    assert admin_client.get(f"/console/quality/{page}/").status_code == 200


def test_the_console_reruns_units(admin_client: Client, monitored_world: World) -> None:
    unit = monitored_world.unit("freshness")
    admin_client.post("/console/quality/unit/", {"action": "rerun", "_selected_action": [unit.pk]})
    unit.refresh_from_db()
    assert (unit.due_at, unit.lane) == (NOW, Lane.REQUESTED)
