"""The gate asked with a query, about a metric, and about many inputs: over REST."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot.dialects.dialect import Dialect

from incidents.api.serializers.gate import AnswerSerializer, answer_to_json
from incidents.gate import answer as gate
from incidents.gate import copies
from incidents.gate.answer import CopyQuestion, ResolvedQuestion
from incidents.models import GatePolicy, GateQuestion, IncidentState, UserReport
from lakehub import wiring
from lakehub.kernel.interval import Interval
from quality.models import Category, Metric, QualityTest
from tests import factories
from tests.factories import DAY, HOUR, NOW, day
from tests.web.incidents.api_clients import token_client
from tests.web.incidents.failing_dataset import BAD_DAY, DAY_BEFORE, FailingDataset

pytestmark = pytest.mark.django_db
BAD = "SELECT * FROM flights WHERE flight_date = '2026-11-16'"


@pytest.fixture(autouse=True)
def at_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring.clock, "now", lambda: NOW)


@pytest.fixture
def stage() -> FailingDataset:
    return FailingDataset.of_the_gate()


def client(scopes: tuple[str, ...] = ("gate:read",)) -> Client:
    return token_client(factories.user(), *scopes, consumer="pricing", data_center="dc2")


def ask(sql: str, expect: int = 200, by: Client | None = None, **fields: Any) -> dict[str, Any]:
    asked = {"sql": sql, "dialect": "duckdb", **fields}
    answer = (by or client()).post("/api/v1/gate/query", asked, content_type="application/json")
    assert answer.status_code == expect, answer.content
    body: dict[str, Any] = answer.json()
    return body


# A query


def test_a_query_is_blocked_by_what_it_reads(stage: FailingDataset) -> None:
    reply = ask(BAD)
    assert (reply["verdict"], reply["allowed"], reply["answers"][0]["incidents"]) == (
        "fail",
        False,
        [stage.dataset.incidents.get().pk],
    )
    assert reply["reads"] == [
        {
            "dataset": "flights",
            "ranges": [{"start": "2026-11-16T05:00:00Z", "end": "2026-11-17T05:00:00Z"}],
            "bounded": True,
            "why": "by `flight_date`",
        }
    ]
    assert ask(BAD.replace("16", "15"))["allowed"]
    assert GateQuestion.objects.count() == 2


def test_a_name_behind_a_dot_that_is_no_column_is_refused_unless_it_is_left_out(stage: FailingDataset) -> None:
    """On PostgreSQL it calls a function of whoever owns the database."""
    stage.dataset.columns = [{"name": "flight_date", "type": "string"}]
    stage.dataset.save()
    sql = BAD.replace("*", "max(f.evil), max(f.flight_date)").replace("flights", "flights AS f")
    why = str(ask(sql, 422, dialect="postgres"))
    assert "The query has `.evil` behind a name that is not known to have such a column" in why
    assert "Write columns without the name of their table, or name it in `leave_out`." in why
    reply = ask(sql, dialect="postgres", leave_out=["Evil", "flight_date"])
    assert (reply["verdict"], reply["left_out"]) == ("fail", ["evil"])
    assert ask(sql.replace("f.evil", "evil"), dialect="postgres")["verdict"] == "fail"


@pytest.mark.parametrize(
    ("kind", "dialect", "bounded"),
    [("timestamp", "duckdb", True), ("string", "duckdb", False), ("string", "sqlite", True)],
)
def test_an_event_time_that_is_a_text_bounds_nothing_but_in_sqlite(
    stage: FailingDataset, kind: str, dialect: str, bounded: bool
) -> None:
    """Of one day `2026-11-16 05:00` stands before `2026-11-16T00:00:00`."""
    columns = [{"name": "flight_date", "type": "string"}, {"name": "ts", "type": kind}]
    type(stage.dataset).objects.update(event_time="ts", columns=columns)
    (reads,) = ask("SELECT * FROM flights WHERE ts < '2026-11-16T00:00:00'", dialect=dialect)["reads"]
    assert reads["bounded"] is bounded


def test_what_nothing_bounds_is_asked_for_as_a_whole_and_the_answer_says_so(stage: FailingDataset) -> None:
    reply = ask("SELECT * FROM flights WHERE carrier = 'AA'")
    (reads,) = reply["reads"]
    assert (reads["bounded"], reply["verdict"]) == (False, "fail")
    assert "it is asked for as a whole" in reads["why"]
    assert reads["ranges"] == [{"start": "1900-01-01T00:00:00Z", "end": "9999-01-01T00:00:00Z"}]


def test_a_table_that_is_no_dataset_is_named_or_left_out(stage: FailingDataset) -> None:
    sql = f"{BAD} AND tailnum IN (SELECT tailnum FROM flihgts)"
    assert "`flihgts` Did you mean `flights`?" in ask(sql, 404)["error"]["message"]
    reply = ask(sql, leave_out=["flihgts"])
    assert (reply["left_out"], len(reply["answers"])) == (["flihgts"], 1)
    all_left_out = ask("SELECT 1 FROM flihgts", leave_out=["flihgts"])
    assert (all_left_out["verdict"], all_left_out["allowed"], all_left_out["answers"]) == ("unknown", True, [])


@pytest.mark.parametrize(
    ("sql", "message"), [("DROP TABLE flights", "not DROP"), ("SELECT (", "line 1"), ("SELECT 1", "reads no table")]
)
def test_what_cannot_be_understood_is_refused_by_field(stage: FailingDataset, sql: str, message: str) -> None:
    assert message in ask(sql, 422)["error"]["fields"]["sql"]
    assert not GateQuestion.objects.exists()


def test_the_zone_of_the_session_is_checked(stage: FailingDataset) -> None:
    assert "no time zone `Mars`" in ask(BAD, 422, timezone="Mars")["error"]["fields"]["timezone"]
    ask(BAD, timezone="../../etc/passwd", expect=422)


def test_nobody_who_may_not_ask_has_anything_parsed(stage: FailingDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Authorization comes before anything of the request is read as an expression."""
    parsed: list[str] = []
    real = Dialect.parse
    monkeypatch.setattr(Dialect, "parse", lambda self, sql, **kwargs: parsed.append(sql) or real(self, sql, **kwargs))
    ask(BAD, 401, by=Client())
    ask(BAD, 401, by=Client(headers={"authorization": "Bearer lh_00000000.nobody"}))
    ask(BAD, 403, by=client(scopes=("catalog:read",)))
    assert parsed == []
    ask(BAD)
    assert parsed == [BAD]


# Metrics


def metric(stage: FailingDataset, **fields: Any) -> Metric:
    weather = factories.dataset("weather", copies=("dc1", "dc2"))
    made = Metric.objects.create(
        name="delay",
        team=factories.team(),
        dataset=stage.dataset,
        sql="SELECT 1 FROM this",
        set_by="ines",
        set_at=NOW,
        **fields,
    )
    made.inputs.add(weather)
    for where in ("dc1", "dc2"):
        for over in (BAD_DAY, DAY_BEFORE):
            weather_test = QualityTest.objects.filter(dataset=weather).first() or factories.test(weather)
            factories.unit(weather_test, factories.copy_of(weather, where), over)
    return made


def ask_metric(day_asked: str = "2026-11-15", name: str = "delay") -> dict[str, Any]:
    asked = {"from": day_asked, "to": f"2026-11-{int(day_asked[-2:]) + 1}"}
    body: dict[str, Any] = client().get(f"/api/v1/gate/metrics/{name}", asked).json()
    return body


def test_a_metric_is_as_good_as_its_inputs_and_its_own_tests(stage: FailingDataset) -> None:
    metric(stage)
    assert ask_metric("2026-11-16")["verdict"] == "fail"
    assert ask_metric()["verdict"] == "pass"
    for key, verdict in (("metric:other.value", "pass"), ("metric:delay.value", "fail")):
        own = factories.test(stage.dataset, Category.OTHERS, key=key, title=key, sustain=HOUR)
        factories.unit(own, factories.copy_of(stage.dataset, "dc2"), DAY_BEFORE, "fail")  # type: ignore[arg-type]
        reply = ask_metric()
        assert (reply["metric"], reply["verdict"], len(reply["answers"])) == ("delay", verdict, 2)


def test_a_metric_fails_with_an_input_of_another_dataset(stage: FailingDataset) -> None:
    metric(stage)
    weather = QualityTest.objects.get(dataset__name="weather").dataset
    report = factories.incident(weather, Category.OTHERS, reported=True, state=IncidentState.ACKNOWLEDGED)
    UserReport.objects.create(incident=report, start=DAY_BEFORE.start, end=DAY_BEFORE.end, text="x", occurred_at=NOW)
    assert ask_metric()["verdict"] == "fail"


def test_a_metric_that_is_not_there_has_a_nearest_name(stage: FailingDataset) -> None:
    metric(stage)
    assert "Did you mean `delay`?" in ask_metric(name="dealy")["error"]["message"]


# Many inputs, few queries


def questions(count: int) -> list[dict[str, str]]:
    return [
        {
            "dataset": "flights",
            "dc": f"dc{1 + at % 2}",
            "from": f"2026-10-{1 + at % 28:02}",
            "to": f"2026-11-{1 + at % 17:02}",
        }
        for at in range(count)
    ]


def test_a_hundred_inputs_take_as_many_queries_as_one(stage: FailingDataset) -> None:
    by = client()
    GatePolicy.objects.create(consumer="pricing", tier=None, preset="strict")
    took = []
    for count in (1, 1, 7, 100):
        with CaptureQueriesContext(connection) as seen:
            answer = by.post("/api/v1/gate", {"inputs": questions(count)}, content_type="application/json")
        assert (answer.status_code, len(answer.json()["answers"])) == (200, count)
        took.append(len([query for query in seen if "SAVEPOINT" not in query["sql"]]))
    assert took[1:] == [took[1]] * 3


def test_no_more_than_a_hundred(stage: FailingDataset) -> None:
    answer = client().post("/api/v1/gate", {"inputs": questions(101)}, content_type="application/json")
    assert answer.status_code == 422


def test_in_a_batch_each_input_is_answered_as_if_it_were_alone(stage: FailingDataset) -> None:
    other = factories.dataset("weather", copies=("dc2",), by_day=False, grace_until=NOW + DAY)
    factories.unit(factories.test(other, cadence=HOUR), verdict="fail")  # type: ignore[arg-type]
    ranges = [BAD_DAY, DAY_BEFORE, Interval(NOW - 90 * DAY, NOW + DAY), day("2026-11-20")]
    known = copies.find_copies(["flights", "weather"], "pricing", now=NOW)
    asked = [
        ResolvedQuestion(CopyQuestion(name, wanted, "pricing", known_copy.copy.data_center.name), known_copy)
        for name in ("flights", "weather")
        for known_copy in known[name]
        for wanted in ranges
    ]
    together = [reply.answer for reply in gate.answer_questions(asked, now=NOW)]
    assert together == [gate.answer_questions([question], now=NOW)[0].answer for question in asked]
    assert {answer.verdict.value for answer in together} == {"pass", "fail", "unknown"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # nothing is changed by asking
@given(st.integers(0, 40 * 24), st.integers(1, 90), st.integers(1, 300))
def test_wider_is_never_better_on_the_rows_either(
    stage_of_many: FailingDataset, start: int, first: int, second: int
) -> None:
    """With findings, whole tables and days; a union is as bad as the worse of its parts."""
    begin = NOW - 40 * DAY + start * HOUR
    middle, end = begin + first * HOUR, begin + (first + second) * HOUR
    (known_copy,) = copies.find_copies(["flights"], "x", now=NOW)["flights"][:1]
    asked = [
        ResolvedQuestion(CopyQuestion("flights", Interval(*edges), "x"), known_copy)
        for edges in ((begin, middle), (middle, end), (begin, end))
    ]
    first_half, second_half, whole = (reply.answer.verdict for reply in gate.answer_questions(asked, now=NOW))
    assert whole.severity == max(first_half.severity, second_half.severity)


@pytest.fixture
def stage_of_many(db: None) -> FailingDataset:
    made = FailingDataset(copies=("dc1",))
    for back in range(1, 36):
        made.unit(day(f"{NOW - back * DAY:%Y-%m-%d}"), "dc1")
    made.fails(day("2026-11-02"), "dc1")
    finding_test = factories.test(made.dataset, Category.INGESTION, planned=False, title="Rows lost")
    factories.unit(finding_test, None, Interval(NOW - 80 * DAY, NOW - 33 * DAY), "fail")  # type: ignore[arg-type]
    factories.unit(finding_test, None, day("2026-11-09"), "warn")  # type: ignore[arg-type]
    return made


# What is described is what is answered


def test_the_answer_has_the_fields_that_are_described(stage: FailingDataset) -> None:
    payload = client().get("/api/v1/gate", {"dataset": "flights", "from": "2026-11-16", "to": "2026-11-17"}).json()
    reply = gate.ask_gate(CopyQuestion("flights", BAD_DAY, "pricing", "dc2"), now=NOW)
    assert payload == AnswerSerializer(answer_to_json(reply)).data
