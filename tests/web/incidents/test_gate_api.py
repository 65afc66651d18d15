from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from incidents.gate.answer import CopyQuestion
from incidents.gate.answer import ask_gate as ask_gate
from incidents.models import GatePolicy, GateQuestion
from lakehub import wiring
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, partition_at
from quality.models import Category
from quality.planning.touched_partitions import retest
from tests import factories
from tests.factories import DAY, MINUTE, NEW_YORK, NOW, day
from tests.web.incidents.api_clients import token_client
from tests.web.incidents.failing_dataset import BAD_DAY, DAY_BEFORE, FailingDataset

pytestmark = pytest.mark.django_db

FROM_TO = {"from": "2026-11-16", "to": "2026-11-17"}


@pytest.fixture(autouse=True)
def at_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring.clock, "now", lambda: NOW)


@pytest.fixture
def stage() -> FailingDataset:
    return FailingDataset.of_the_gate()


def client(consumer: str = "pricing", data_center: str = "dc2", scopes: tuple[str, ...] = ("gate:read",)) -> Client:
    return token_client(factories.user(), *scopes, consumer=consumer, data_center=data_center)


def ask(by: Client | None = None, expect: int = 200, **asked: str) -> dict[str, Any]:
    answer = (by or client()).get("/api/v1/gate", {"dataset": "flights", **FROM_TO, **asked})
    assert answer.status_code == expect, answer.content
    body: dict[str, Any] = answer.json()
    return body


def test_a_bad_day_is_blocked_with_its_incident_and_when_to_ask_again(stage: FailingDataset) -> None:
    reply = ask()
    assert (reply["verdict"], reply["allowed"], reply["data_center"], reply["consumer"]) == (
        "fail",
        False,
        "dc2",
        "pricing",
    )
    assert reply["incidents"] == [stage.dataset.incidents.get().pk]
    (reason,) = reply["reasons"]
    assert (reason["reason"], reason["test"], reason["blocks"]) == ("sustained", "Rows as in dc1", True)
    assert reason["ranges"] == [{"start": "2026-11-16T05:00:00Z", "end": "2026-11-17T05:00:00Z"}]
    assert reply["retry_after"] >= 1


def test_the_day_before_and_the_other_data_center_pass(stage: FailingDataset) -> None:
    assert ask(**{"from": "2026-11-15", "to": "2026-11-16"})["verdict"] == "pass"
    assert ask(dc="dc1")["verdict"] == "pass"


@pytest.mark.parametrize(("grain", "start"), [("quarter", "2026-07-01"), ("year", "2025-01-01")])
def test_the_last_day_of_a_quarter_or_year_has_the_verdict_of_the_whole(grain: str, start: str) -> None:
    """A unit that begins months before the range of the question was not found: the answer was that it was never tested."""
    stage = FailingDataset(grain=grain)
    over = partition_at(day(start).start, Grain(grain), NEW_YORK)
    stage.dataset.copies.update(monitored_from=over.start)
    stage.opened(over)
    last_day = {"from": (over.end - DAY).isoformat(), "to": over.end.isoformat()}
    reply = ask(**last_day)
    assert (reply["verdict"], reply["reasons"][0]["reason"]) == ("fail", "sustained")
    stage.passes(stage.unit(over), at=NOW + MINUTE)
    assert ask(**last_day)["verdict"] == "pass"


def test_tomorrow_is_unknown_because_it_is_not_due(stage: FailingDataset) -> None:
    reply = ask(**{"from": "2026-11-18", "to": "2026-11-19"})
    assert (reply["verdict"], reply["reasons"][0]["reason"]) == ("unknown", "not_due")


def test_a_change_of_state_shows_in_the_next_answer(stage: FailingDataset) -> None:
    stage.passes(stage.unit(), at=NOW + MINUTE)
    assert ask()["verdict"] == "pass"


def test_a_partition_that_changed_and_is_not_retested_yet_says_so(
    stage: FailingDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It passes until the retest is overdue, and then is unknown."""
    range_before = {"from": "2026-11-15", "to": "2026-11-16"}
    retest(factories.copy_of(stage.dataset, "dc2").pk, [(DAY_BEFORE.start, DAY_BEFORE.end)], now=NOW, pause=5 * MINUTE)
    reply = ask(**range_before)
    (reason,) = reply["reasons"]
    assert (reply["verdict"], reply["allowed"], reason["reason"]) == ("pass", True, "changed")
    assert (reason["changed_at"], reason["retest_due_at"]) == ("2026-11-17T19:32:00Z", "2026-11-17T19:37:00Z")
    assert ask(dc="dc1", **range_before)["reasons"][0]["reason"] == "passing"
    monkeypatch.setattr(wiring.clock, "now", lambda: NOW + 15 * MINUTE)
    (overdue,) = ask(**range_before)["reasons"]
    assert (overdue["verdict"], overdue["reason"], overdue["changed_at"]) == (
        "unknown",
        "retest_overdue",
        "2026-11-17T19:32:00Z",
    )


def test_an_eta_is_told_and_decides_when_to_ask_again(stage: FailingDataset) -> None:
    stage.dataset.incidents.update(eta=NOW + 10 * MINUTE)
    stage.unit().__class__.objects.update(due_at=None)
    reply = ask()
    assert (reply["recovery_eta"], reply["retry_after"]) == ("2026-11-17T19:42:00Z", 600.0)


def test_the_consumer_is_the_tokens_and_its_policy_decides(stage: FailingDataset) -> None:
    GatePolicy.objects.create(consumer="dashboards", tier=1, blocks=["unknown:unmonitored"])
    reply = ask(client("dashboards"), consumer="pricing")
    assert (reply["consumer"], reply["verdict"], reply["allowed"]) == ("dashboards", "fail", True)
    assert reply["retry_after"] is None


def test_grace_allows_and_says_what_it_would_be(stage: FailingDataset) -> None:
    Dataset.objects.update(grace_until=NOW + DAY)
    reply = ask()
    assert (reply["verdict"], reply["reasons"][0]["reason"], reply["allowed"]) == ("fail", "in_grace", True)


def test_a_comparison_with_dc1_says_nothing_about_dc1_itself(stage: FailingDataset) -> None:
    test = stage.test()
    assert test.version is not None
    test.version.flattened = "rows(this) / rows(this@dc1) > 0.999"
    test.version.save()
    factories.test(stage.dataset, Category.FRESHNESS)
    assert {reason["test"] for reason in ask()["reasons"]} >= {"Rows as in dc1"}
    assert "Rows as in dc1" not in {reason["test"] for reason in ask(dc="dc1")["reasons"]}


def test_stale_data_counts_from_its_boundary_on(stage: FailingDataset) -> None:
    stage.passes(stage.unit(), at=NOW)
    stage.stale(BAD_DAY.start)
    assert ask()["verdict"] == "fail"
    assert ask(**{"from": "2026-11-15", "to": "2026-11-16"})["verdict"] == "pass"


def test_a_question_is_kept_once_a_request(stage: FailingDataset) -> None:
    by = client()
    for request_id in ("run 7", "run 7", "run 8"):
        ask(by, request_id=request_id)
    assert list(GateQuestion.objects.order_by("pk").values_list("request_id", "verdict", "allowed")) == [
        ("run 7", "fail", False),
        ("run 8", "fail", False),
    ]


def test_all_inputs_of_a_job_are_one_question(stage: FailingDataset) -> None:
    inputs = [{"dataset": "flights", "dc": dc, **FROM_TO} for dc in ("dc1", "dc2")]
    answer = client().post("/api/v1/gate", {"inputs": inputs}, content_type="application/json")
    reply = answer.json()
    assert (reply["verdict"], reply["allowed"], [input_answer["verdict"] for input_answer in reply["answers"]]) == (
        "fail",
        False,
        ["pass", "fail"],
    )


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        ({"dataset": "fligths"}, 404, "There is no dataset `fligths`. Did you mean `flights`?"),
        ({"dc": "dc3"}, 404, "`flights` has no copy in `dc3`. Did you mean `dc2`?"),
        ({"from": "2026-11-17", "to": "2026-11-16"}, 422, "which is not after its start"),
        ({"from": "16.11.2026"}, 422, "`16.11.2026` is no time. Write 2026-11-16, or 2026-11-16T05:00:00Z."),
        (
            {"to": "2026-11-17T05:00:00"},
            422,
            "has no offset, so it could be any zone's. Write 2026-11-17T05:00:00Z for UTC.",
        ),
        ({"to": ""}, 422, "Say `to`"),
        ({"dataset": ""}, 422, "Say which `dataset`."),
    ],
)
def test_a_question_that_makes_no_sense_is_answered_with_the_remedy(
    stage: FailingDataset, asked: dict[str, str], code: int, message: str
) -> None:
    reply = ask(expect=code, **asked)
    assert message in reply["error"]["message"]
    assert not GateQuestion.objects.exists()


def test_both_ends_are_mended_at_once(stage: FailingDataset) -> None:
    assert set(ask(expect=422, **{"from": "x", "to": "y"})["error"]["fields"]) == {"from", "to"}


def test_a_plus_that_arrives_as_a_space_is_read_as_a_plus(stage: FailingDataset) -> None:
    reply = ask(**{"from": "2026-11-16T05:00:00 00:00", "to": "2026-11-17T06:00:00+01:00"})
    assert reply["range"] == {"start": "2026-11-16T05:00:00Z", "end": "2026-11-17T05:00:00Z"}


def test_a_token_without_a_data_center_must_say_which(stage: FailingDataset) -> None:
    reply = ask(client(data_center=""), expect=422)
    assert "`flights` has copies in dc1, dc2: say which one, as in `dc=dc1`" in reply["error"]["message"]


def test_a_token_without_the_scope_is_refused(stage: FailingDataset) -> None:
    assert "lacks the scope 'gate:read'" in ask(client(scopes=("catalog:read",)), expect=403)["error"]["message"]
    assert Client().get("/api/v1/gate").status_code == 401


@pytest.mark.parametrize("policies", [0, 3])
def test_an_answer_takes_four_statements_whatever_the_number_of_partitions(
    stage: FailingDataset, policies: int
) -> None:
    """Copies, tests, units, and the question itself is kept; one more where the consumer has policies."""
    GatePolicy.objects.bulk_create(GatePolicy(consumer="pricing", tier=tier) for tier in range(policies))
    for number in range(1, 15):
        stage.unit(day(f"2026-10-{number:02}"))
    for wanted in (BAD_DAY, Interval(NOW - 60 * DAY, NOW)):
        with CaptureQueriesContext(connection) as asked:
            ask_gate(CopyQuestion("flights", wanted, "pricing", "dc2"), now=NOW)
        assert len([query for query in asked if "SAVEPOINT" not in query["sql"]]) == (5 if policies else 4)


def test_over_rest_the_token_is_one_query_more(stage: FailingDataset) -> None:
    caller = client()
    ask(caller)  # the token's first use is written down
    with CaptureQueriesContext(connection) as asked:
        ask(caller)
    reading = [query["sql"] for query in asked if query["sql"].lstrip("(").startswith(("SELECT", "WITH"))]
    assert len(reading) == 4, reading


def test_a_consumer_is_told_that_nothing_new_comes(stage: FailingDataset) -> None:
    """What has come is judged as ever."""
    before = ask()
    assert before["paused"] is None
    factories.feed(stage.dataset, paused=True, paused_at=NOW - DAY, paused_why="the database moves")
    with CaptureQueriesContext(connection) as queries:
        reply = ask()
    assert reply["paused"] == {"since": "2026-11-16T19:32:00Z", "why": "the database moves"}
    assert (reply["verdict"], reply["reasons"]) == (before["verdict"], before["reasons"])
    assert not [query for query in queries.captured_queries if 'FROM "catalog_feed"' in query["sql"]]
