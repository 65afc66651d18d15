"""A test is tried on the past: what it says of each day, whom it would have woken, and nothing stays of it."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from ingestion.models import TouchedPartition
from ingestion.runs.retention import delete_old_touched_partitions
from lakehub import wiring
from lakehub.accounts.models import Role
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.outcome import Outcome, Verdict
from quality import engines
from quality.backtest import run
from quality.backtest.report import BacktestReport
from quality.backtest.run import run_backtest
from quality.domain.language import flattened, parse
from quality.engines.scans.scan import Limits, Scan, ScanAnswers
from quality.execution import claims, worker
from quality.generation import custom_tests
from quality.measuring import concurrency, scan_planner
from quality.models import Category, Flip, QualityTest, Result, Unit
from tests import factories, hudi_tables
from tests.factories import DAY, HOUR, NEW_YORK, NOW, day
from tests.web.quality.conftest import rows

pytestmark = pytest.mark.django_db

SHORT = {"2026-10-20": 500, "2026-10-21": 400, "2026-11-03": 890}
"""The 3rd of November is the Tuesday after the clocks went back."""
NEWEST = 40


@pytest.fixture(autouse=True)
def at_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring.clock, "now", lambda: NOW)


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[Scan]:
    """What is asked of the engines."""
    asked: list[Scan] = []

    def read(engine: str, scan: Scan, limits: Limits) -> ScanAnswers:
        asked.append(scan)
        return engines.run_scan(engine, scan, limits)

    monkeypatch.setattr(scan_planner, "run_scan", read)
    return asked


@pytest.fixture
def flights(tmp_path: Path) -> Dataset:
    """Forty days of a thousand flights and up to 4 more, but for three that are short."""
    names = [(NOW - number * DAY).astimezone(NEW_YORK).date().isoformat() for number in range(NEWEST, 0, -1)]
    days: dict[str | None, pa.Table] = {
        name: rows(name, SHORT.get(name, 1000 + number % 5)) for number, name in enumerate(names)
    }
    uri = hudi_tables.hudi_table(tmp_path / "dc1" / "flights", days, column="flight_date")
    columns = [{"name": name, "type": "string", "nullable": True} for name in ("id", "flight_date", "tailnum")]
    made = factories.dataset("flights", copies=(), columns=columns, tier=1, primary_key=["id", "flight_date"])
    factories.data_center("dc1", (tmp_path / "dc1").as_uri())
    factories.copy(made, "dc1", uri=uri)
    factories.feed(made)
    return made


def tried(flights: Dataset, expression: str = "", **given: Any) -> BacktestReport:
    return run_backtest(flights, expression=expression, **{"now": NOW, "days": 30, **given})


def failing(backtest: BacktestReport) -> dict[str, str]:
    return {run.name: run.observed for copy in backtest.copies for run in copy.runs if run.outcome is Outcome.FAIL}


def test_it_says_how_often_it_would_have_paged(flights: Dataset, scans: list[Scan]) -> None:
    backtest = tried(flights, "rows(this) > 900")
    assert failing(backtest) == {"2026-10-20": "500", "2026-10-21": "400", "2026-11-03": "890"}
    assert backtest.summary == "This would have paged you 2 times in 30 days."
    first = backtest.pages[0]
    assert (first.first, first.last, first.at) == (
        "2026-10-20",
        "2026-10-21",
        day("2026-10-20").end + 2 * HOUR + HOUR / 2,
    )
    assert len(backtest.copies[0].runs) == 30
    assert len(scans) == 1


def test_one_scan_whatever_the_test_measures_of_however_many_days(flights: Dataset, scans: list[Scan]) -> None:
    tried(flights, "nulls(this.tailnum) / rows(this) < 1% and duplicates(this) <= 0% and rows(this) > 1", days=40)
    assert len(scans) == 1


def test_what_has_not_changed_is_not_measured_again(flights: Dataset, scans: list[Scan]) -> None:
    first = tried(flights, "rows(this) > 900")
    assert tried(flights, "rows(this) > 900").copies == first.copies
    assert len(scans) == 1


def test_nothing_of_it_is_stored_as_a_verdict(flights: Dataset) -> None:
    tried(flights, "rows(this) > 900")
    assert not any(model.objects.exists() for model in (Unit, Result, Flip, QualityTest))


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> list[Limits]:
    """How long each scan may take."""
    seen: list[Limits] = []

    def read(engine: str, scan: Scan, limits: Limits) -> ScanAnswers:
        seen.append(limits)
        return engines.run_scan(engine, scan, limits)

    monkeypatch.setattr(scan_planner, "run_scan", read)
    return seen


def test_no_scan_may_take_longer_than_what_is_left(flights: Dataset, allowed: list[Limits]) -> None:
    tried(flights, "rows(this) > 900 with timeout=20m")
    assert all(limits.timeout <= timedelta(seconds=20) for limits in allowed)
    tried(flights, "nulls(this.id) < 901 with timeout=2s")
    assert allowed[-1].timeout == timedelta(seconds=2)
    tried(flights, "nulls(this.tailnum) < 901 with timeout=20m", budget=None)
    assert allowed[-1].timeout == timedelta(minutes=20)


def test_a_request_runs_so_many_queries_and_no_more(
    flights: Dataset, scans: list[Scan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MAX_QUERIES", 3)
    backtest = tried(flights, "query(this, 'SELECT count(*) FROM this') > 900", days=9)
    assert (sum(measure.kind == "query" for scan in scans for measure in scan.measures), backtest.is_partial) == (
        3,
        True,
    )
    causes = [run.cause for run in backtest.copies[0].runs]
    assert sum("more queries than one request may run" in cause for cause in causes) == len(causes) - 3 == 2


def test_a_request_starts_no_spark(flights: Dataset) -> None:
    with pytest.raises(Refused) as caught:
        tried(flights, "rows(this) > 900 with engine=spark")
    assert "No request starts spark" in caught.value.fields["expression"]


def test_each_person_tries_one_at_a_time(flights: Dataset) -> None:
    custom_tests.write_custom_test(
        flights, key="enough", title="E", expression="rows(this) > 900", actor="ann", now=NOW
    )
    clients = {}
    for name in ("ann", "bob"):
        factories.member(person := factories.user(name), flights.team, Role.ON_CALL)
        (client := Client()).force_login(person)
        clients[name] = client

    def status(name: str) -> int:
        asked = {"expression": "rows(this) > 900", "days": 5}
        return clients[name].post("/api/v1/datasets/flights/backtest", asked, "application/json").status_code

    with run.single_backtest_of("ann"):
        assert (status("ann"), status("bob")) == (409, 200)
        for page in ("/datasets/flights/tests/enough", "/onboarding/flights"):
            html = clients["ann"].get(f"{page}?backtest=").content.decode()
            assert "Another backtest of yours is running" in html
    assert status("ann") == 200


def test_what_a_request_reads_takes_a_slot_as_the_claim_of_a_worker_does(flights: Dataset, settings: Settings) -> None:
    settings.LAKEHUB_ENGINE_LIMITS = {"duckdb": 1}
    factories.member(person := factories.user("ann"), flights.team, Role.OWNER)
    (client := Client()).force_login(person)

    def asked() -> tuple[int, int]:
        body = {"expression": "rows(this) > 900", "days": 5}
        trial = client.post("/api/v1/datasets/flights/backtest", body, "application/json")
        return trial.status_code, client.get("/api/v1/datasets/flights/rules/proposals").status_code

    assert asked() == (200, 200)
    with concurrency.scan_slots_held("duckdb", until=HOUR):
        assert asked() == (409, 409)
        html = client.get("/datasets/flights/rules?propose=1").content.decode()
        assert "Others are reading there just now (at most 1 at once on duckdb)" in html
    assert asked() == (200, 200)
    assert claims.full_resources() == []


def test_a_stored_test_is_tried_by_its_key_with_its_own_sustain_period(flights: Dataset) -> None:
    stored = flattened(parse("rows(this) > 900"))
    factories.test(flights, Category.OTHERS, key="enough", expression=stored, sustain=400 * DAY)
    assert tried(flights, test="enough").pages == ()
    assert len(failing(tried(flights, test="enough"))) == 3


def test_a_stored_test_that_nothing_can_measure_any_more_is_refused(flights: Dataset) -> None:
    factories.quality_test(flights, key="of-a-plug-in", expression="gone_plugin(this) < 0.1%")
    with pytest.raises(Refused, match="gone_plugin"):
        run_backtest(flights, test="of-a-plug-in", now=NOW)


def test_an_anomaly_is_seen_without_the_days_that_are_known_to_be_bad(flights: Dataset) -> None:
    assert set(SHORT) <= set(failing(tried(flights, "deviation(rows(this), 3w) < 4")))
    bad = factories.test(flights, Category.OTHERS)
    for name in list(SHORT)[:2]:
        unit = factories.unit(bad, over=day(name))
        Flip.objects.create(unit=unit, was=Verdict.WARN, becomes=Verdict.FAIL, at=NOW - DAY)
    again = tried(flights, "deviation(rows(this), 3w) < 4").copies[0].runs
    facts = {run.name: dict(run.facts) for run in again}["2026-11-03"]
    assert "2026-10-20 04:00 UTC: part of an incident; 2026-10-21 04:00 UTC: part of an incident" in facts["left out"]
    assert set(SHORT) <= {run.name for run in again if run.outcome is Outcome.FAIL}


def test_a_day_of_which_there_is_nothing_is_counted(flights: Dataset) -> None:
    backtest = tried(flights, "rows(this) > 900", days=60)
    # Monitored for 60 days, of which the lake has 40; days side by side are one alarm.
    assert (len(backtest.copies[0].runs), backtest.copies[0].count(Outcome.FAIL)) == (60, 23)
    assert len(backtest.pages) == 3


def test_when_time_is_over_it_says_how_far_it_came(flights: Dataset) -> None:
    backtest = tried(flights, "rows(this) > 900", budget=timedelta(0))
    assert (backtest.is_partial, backtest.copies[0].runs) == (True, ())
    assert "The 30 oldest partitions were not reached in time." in backtest.copies[0].notes
    assert tried(flights, "rows(this) > 900", cancelled=lambda: True).is_partial


def test_a_dimension_test_takes_a_scan_for_each_day_and_looks_at_the_time_between(
    flights: Dataset, scans: list[Scan]
) -> None:
    backtest = tried(flights, "rows(this) > 900 with by=flight_date", days=6)
    assert len(backtest.copies[0].runs) == len(scans) == 6


def commit(flights: Dataset, name: str, hours_after_its_end: float, count: int = 1004) -> None:
    copy, span = factories.copy_of(flights), day(name)
    made = factories.commit(copy, span.end + hours_after_its_end * HOUR)
    TouchedPartition.objects.create(commit=made, copy=copy, start=span.start, end=span.end, rows=count)


def test_freshness_is_replayed_from_the_commits(flights: Dataset, scans: list[Scan]) -> None:
    commit(flights, "2026-11-10", 0.5)
    for number in range(11, 17):
        commit(flights, f"2026-11-{number}", 7 if number == 13 else 1)
    backtest = tried(flights, "freshness(this) < 2h")
    assert failing(backtest) == {"2026-11-13": "7 h"}
    (page,) = backtest.pages
    end = day("2026-11-13").end
    assert (page.at, page.ended_at) == (end + 2 * HOUR + HOUR / 2, end + 7 * HOUR)
    assert "partitions before the first commit" in backtest.copies[0].notes[1]
    # How many rows of ours there are; upstream cannot be read here.
    assert len([scan for scan in scans if "flights" in str(scan.target)]) <= 2


def test_what_was_forgotten_of_the_commits_is_not_replayable(flights: Dataset, settings: Any) -> None:
    """The commits stay, the partitions that they touched do not."""
    for number in range(6, 17):
        commit(flights, f"2026-11-{number:02}", 1)
    for row in TouchedPartition.objects.select_related("commit"):
        TouchedPartition.objects.filter(pk=row.pk).update(claimed_at=row.commit.completed_at)
    settings.LAKEHUB_HISTORY_KEPT_DAYS = 5
    assert delete_old_touched_partitions(now=NOW, retention=5 * DAY) == 6
    (copy,) = tried(flights, "freshness(this) < 2h").copies
    assert (failing(tried(flights, "freshness(this) < 2h")), copy.pages) == ({}, ())
    assert [run.name for run in copy.runs] == [f"2026-11-{number}" for number in range(14, 17)]
    assert "7 partitions before 2026-11-13 06:00 UTC are not replayable" in copy.notes[-1]
    TouchedPartition.objects.all().delete()
    (copy,) = tried(flights, "freshness(this) < 2h").copies
    assert (copy.runs, copy.pages) == ((), ())


def test_freshness_that_nobody_saw_cannot_be_replayed_and_says_why(flights: Dataset) -> None:
    (copy,) = tried(flights, "freshness(this) < 2h").copies
    assert (copy.runs, copy.notes) == ((), ("Freshness cannot be replayed: no commit of this copy is known.",))
    flights.ingested = False
    flights.save()
    (copy,) = tried(flights, "freshness(this) < 2h").copies
    assert "does not ingest this dataset" in copy.notes[0]


def test_a_day_that_came_later_than_it_uses_to_is_out_of_the_ordinary(flights: Dataset) -> None:
    """Updates come for days; of the days before only what had come at the same age counts."""
    late = {"2026-11-16": 9.0}
    for number in range(20, 0, -1):
        name = (NOW - number * DAY).astimezone(NEW_YORK).date().isoformat()
        commit(flights, name, late.get(name, 1 + number % 3 / 10))
        commit(flights, name, 60, count=5)
    test = factories.test(flights, Category.OTHERS, key="late", expression="lt(deviation(delay(this), 2w), 4)")
    unit = factories.unit(test, over=day("2026-11-16"), due_at=day("2026-11-16").end + 10 * HOUR)
    worker.run_due_units(now=day("2026-11-16").end + 10 * HOUR, worker="test")
    unit.refresh_from_db()
    assert (unit.latest_outcome, unit.detail["facts"]["delay(this)"]) == ("fail", "9 h")
    assert unit.detail["facts"]["compared with"] == "the last 10 workdays"
    assert unit.detail["facts"]["usual"].startswith("1 h 6 min")


def test_the_arrivals_of_all_days_are_read_at_once(flights: Dataset) -> None:
    for number in range(20, 0, -1):
        commit(flights, (NOW - number * DAY).astimezone(NEW_YORK).date().isoformat(), 1 + number % 3 / 10)
    with CaptureQueriesContext(connection) as asked:
        backtest = tried(flights, "deviation(delay(this), 2w) < 4", days=12)
    assert backtest.copies[0].count(Outcome.PASS) >= 5
    assert len([query for query in asked if "ingestion_touchedpartition" in query["sql"]]) == 1


def test_what_is_wrong_is_refused_by_field(flights: Dataset) -> None:
    for given, field, why in (
        ({"expression": "rowz(this) > 1"}, "expression", "Did you mean `rows`"),
        ({"expression": "rows(this) > 1", "days": 0}, "days", "give 1 to 800"),
        ({}, "expression", "one of the two"),
    ):
        with pytest.raises(Refused) as refused:
            tried(flights, **given)  # type: ignore[arg-type]  # named as in the signature
        assert why in refused.value.fields[field]
    with pytest.raises(NotFound, match="has no test `enuf`"):
        tried(flights, test="enuf")


def test_over_rest_it_needs_the_right_to_rerun(flights: Dataset) -> None:
    address, client = "/api/v1/datasets/flights/backtest", Client()
    draft = {"expression": "rows(this) > 900", "days": 30}
    person = factories.user("ann")
    client.force_login(person)
    assert client.post(address, draft, content_type="application/json").status_code == 403
    factories.member(person, flights.team, Role.ON_CALL)
    answer = client.post(address, draft, content_type="application/json").json()
    assert answer["summary"] == "This would have paged you 2 times in 30 days."
    assert [page["first"] for page in answer["copies"][0]["pages"]] == ["2026-10-20", "2026-11-03"]
    assert answer["copies"][0]["runs"][0]["outcome"] == "pass"


def test_on_the_command_line(flights: Dataset) -> None:
    out = StringIO()
    call_command("backtest", "flights", "rows(this) > 900", "--days", "30", stdout=out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "This would have paged you 2 times in 30 days."
    assert "dc1: 27 pass, 3 fail" in lines
    assert any("2026-10-20 to 2026-10-21, 500 > 900" in line for line in lines)
    out = StringIO()
    call_command("backtest", "flights", "rows(this) > 900", "--days", "30", "--json", stdout=out)
    assert json.loads(out.getvalue())["copies"][0]["pages"][1]["first"] == "2026-11-03"
    with pytest.raises(CommandError, match="Did you mean `flights`"):
        call_command("backtest", "flihgts", "rows(this) > 1")
