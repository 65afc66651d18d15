"""Pipelines that read each other's tables: each runs once for a change, after those that it reads."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ingestion.models import JobKind, JobRun, JobState
from ingestion.pipelines.registering import register_pipeline
from ingestion.runs import feed_schedule
from ingestion.runs.modelled_tables.input_commits import followed_inputs
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.factories import DAY, MINUTE, NOW
from tests.query_plans import plans_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def flights() -> DatasetCopy:
    return given.copy_of(given.dataset("flights", columns=[{"name": "day", "type": "string", "nullable": True}]))


def pipeline(name: str, *sources: str, every: str = "") -> DatasetCopy:
    """Of the days of its sources; it ran last at NOW - 13 minutes."""
    inputs = "".join(f"  {each}: {each}\n" for each in sources[1:])
    texts = {
        "table.sql": "CREATE TABLE t (day STRING)",
        "pipeline.yaml": f"name: {name}\nteam: flight-ops\ntier: 3\nrecord_key: day\nsource: {sources[0]}\n"
        + (f"inputs:\n{inputs}" if inputs else "")
        + (f"every: {every}\n" if every else ""),
        "transform.sql": "SELECT s.day FROM <SRC> s"
        + "".join(f" JOIN {each} ON s.day = {each}.day" for each in sources[1:]),
    }
    copy = given.with_table(given.copy_of(register_pipeline(texts, actor="ana", now=NOW - DAY).dataset))
    ran(copy, NOW - 13 * MINUTE, JobKind.BOOTSTRAP)
    return copy


def ran(copy: DatasetCopy, at: datetime, kind: JobKind = JobKind.INCREMENTAL) -> None:
    given.run(copy, kind, started_at=at, ended_at=at)


def at_work(copy: DatasetCopy, state: JobState = JobState.RUNNING) -> None:
    given.run(copy, JobKind.INCREMENTAL, state, ended_at=None)


def ended(now: datetime) -> None:
    """What is queued has run, a moment ago."""
    JobRun.objects.filter(state=JobState.QUEUED).update(state=JobState.SUCCEEDED, started_at=now, ended_at=now)


def due(now: datetime = NOW) -> list[str]:
    return [run.copy.dataset.name for run in feed_schedule.request_due_runs(now=now)]


def test_without_an_interval_it_runs_when_a_modelled_table_that_it_reads_has_a_commit(flights: DatasetCopy) -> None:
    upstream = pipeline("days", "flights")
    pipeline("more", "days")
    pipeline("hourly", "days", every="1h")
    given.commit(flights, NOW - MINUTE)
    assert due() == [], "of tables that no pipeline makes they wait for the interval"
    given.commit(upstream, NOW - MINUTE)
    assert due() == ["more"]
    ended(NOW)
    assert due(NOW + MINUTE) == [], "once for each commit"


def test_of_a_chain_that_is_due_the_upstream_goes_first() -> None:
    upstream = pipeline("days", "flights")
    pipeline("more", "days")
    pipeline("last", "more")
    assert due(NOW + 3 * MINUTE) == ["days"]
    assert due(NOW + 4 * MINUTE) == [], "it is at work"
    ended(NOW + 5 * MINUTE)
    given.commit(upstream, NOW + 5 * MINUTE)
    assert due(NOW + 6 * MINUTE) == ["more"]
    ended(NOW + 7 * MINUTE)
    assert due(NOW + 8 * MINUTE) == ["last"], "also where nothing was committed"
    ended(NOW + 9 * MINUTE)
    assert due(NOW + 10 * MINUTE) == []


def test_a_table_of_two_modelled_ones_runs_when_both_have_run() -> None:
    left, right = pipeline("left", "flights", every="commit"), pipeline("right", "flights", every="commit")
    ran(pipeline("both", "left", "right"), NOW - 10 * MINUTE)
    at_work(right)
    given.commit(left, NOW - MINUTE)
    assert due() == []
    assert feed_schedule.next_request_at(now=NOW) == NOW + 2 * MINUTE, "that of the left one"
    JobRun.objects.filter(copy=right, state=JobState.RUNNING).update(state=JobState.FAILED, ended_at=NOW)
    assert due(NOW + MINUTE) == ["both"]


@pytest.mark.parametrize(
    ("ran_at", "state", "expected"),
    [
        (NOW - 5 * MINUTE, JobState.RUNNING, ["more"]),  # it has gone first already, and is at work again
        (None, JobState.RUNNING, []),
        (None, JobState.QUEUED, []),
        (None, JobState.WAITING, ["more"]),
        (None, JobState.PAUSED, ["more"]),
    ],
)
def test_nobody_waits_for_one_that_is_always_at_work_or_held_up(
    ran_at: datetime | None, state: JobState, expected: list[str]
) -> None:
    upstream = pipeline("days", "flights")
    pipeline("more", "days")
    if ran_at is not None:
        ran(upstream, ran_at)
    at_work(upstream, state)
    assert due(NOW + 3 * MINUTE) == expected


def test_nobody_waits_for_more_than_an_interval() -> None:
    at_work(pipeline("days", "flights"))
    pipeline("more", "days")
    assert due(NOW + 16 * MINUTE) == []
    assert due(NOW + 17 * MINUTE) == ["more"]


def test_a_first_load_waits_for_that_of_its_input() -> None:
    for name, source in (("days", "flights"), ("more", "days")):
        pipeline(name, source)
    JobRun.objects.all().delete()
    registered = NOW - DAY
    assert due(registered) == ["days"]
    assert due(registered + MINUTE) == []
    ended(registered + MINUTE)
    assert due(registered + 2 * MINUTE) == ["more"]


def test_queries_do_not_grow_with_pipelines_and_each_is_a_search_in_an_index() -> None:
    counts = []
    for name in ("days", "more", "last"):
        pipeline(name, "flights")
        with CaptureQueriesContext(connection) as queries:
            feed_schedule.next_request_at(now=NOW)
        counts.append(len(queries))
    assert counts == [4, 4, 4]
    copy = pipeline("end", "last", "days", every="commit")
    (plan,) = plans_of(lambda: followed_inputs([copy]))
    assert "commit_newest_of_copy" in plan
    assert "jobrun_of_copy" in plan or "jobrun_newest" in plan
    assert not re.search("(SCAN|Seq Scan on) (U0|ingestion_(commit|jobrun))", plan)
