"""Which commits of its inputs a pipeline has not read, and since when: by API and Prometheus, and as a finding where it is for too long."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ingestion import tasks
from ingestion.lake import readers
from ingestion.lake.findings import PIPELINE_BEHIND
from ingestion.models import Commit, Finding, JobKind, JobState, ReaderPosition
from ingestion.pipelines.registering import register_pipeline
from ingestion.runs.modelled_tables import lag, progress
from ingestion.runs.modelled_tables.progress import CopyProgress, InputProgress, progress_of
from lakehub import clock
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.factories import DAY, HOUR, MINUTE, NOW
from tests.query_plans import plans_of
from tests.unit.ingestion.pipelines.test_pipeline_files import PIPELINE, TABLE, TRANSFORM

pytestmark = pytest.mark.django_db
READERS_INDEX = "reader_once_a_copy|sqlite_autoindex_ingestion_readerposition_1"
COMMITS_INDEX = "commit_once|sqlite_autoindex_ingestion_commit_1"
"""A constraint has a name of its own in PostgreSQL only."""
PROGRESS = "/api/v1/datasets/flights-by-day/pipeline/progress"


def instant(at: datetime) -> str:
    return f"{at:%Y%m%d%H%M%S%f}"[:17]


def modelled(pipeline: str = PIPELINE, transform: str = TRANSFORM) -> DatasetCopy:
    """The table flights-by-day, loaded two hours ago, whose pipeline follows flights and airlines."""
    for name, columns in {"flights": ("id", "day", "carrier", "delay"), "airlines": ("carrier", "name")}.items():
        given.dataset(name, columns=[{"name": column, "type": "string", "nullable": True} for column in columns])
    texts = {"table.sql": TABLE, "pipeline.yaml": pipeline, "transform.sql": transform}
    copy = given.copy_of(register_pipeline(texts, actor="ana", now=NOW - DAY).dataset)
    given.run(copy, JobKind.BOOTSTRAP, started_at=NOW - 2 * HOUR, ended_at=NOW - 2 * HOUR)
    return copy


def input_copy(name: str) -> DatasetCopy:
    return DatasetCopy.objects.get(dataset__name=name)


def committed(name: str, at: datetime, **facts: object) -> Commit:
    return given.commit(input_copy(name), at, **{"instant": instant(at - MINUTE), **facts})  # type: ignore[arg-type]  # its counts


def has_read(name: str, upto: datetime) -> None:
    readers.note_position(input_copy(name), "pipeline flights-by-day", instant(upto), actor="x", now=NOW)


def progress_now(copy: DatasetCopy, now: datetime = NOW) -> CopyProgress:
    (of_copy,) = progress_of([copy], now=now)
    return of_copy


def of_input(copy: DatasetCopy, name: str) -> InputProgress:
    return next(each for each in progress_now(copy).inputs if each.input.name == name)


def test_a_commit_waits_until_it_is_read() -> None:
    copy = modelled()
    for minutes in (30 * 60, 90, 60, 10):
        committed("flights", NOW - minutes * MINUTE)
    has_read("flights", NOW - 60 * MINUTE)
    has_read("airlines", NOW - 60 * MINUTE)
    flights = of_input(copy, "flights")
    assert (flights.pending, flights.processed, flights.waits_since, flights.read_upto) == (1, 2, NOW - 10 * MINUTE, NOW - HOUR)  # fmt: skip
    assert of_input(copy, "airlines").pending == 0
    assert (progress_now(copy).pending, progress_now(copy).lag(now=NOW)) == (1, 10 * MINUTE)
    has_read("flights", NOW - 10 * MINUTE)
    assert (progress_now(copy).pending, progress_now(copy).lag(now=NOW)) == (0, timedelta())


def test_who_has_read_nothing_yet_is_behind_by_what_nobody_knows() -> None:
    copy = modelled()
    committed("flights", NOW - HOUR)
    assert (of_input(copy, "flights").pending, progress_now(copy).lag(now=NOW)) == (None, None)
    has_read("flights", NOW - 2 * HOUR)
    assert progress_now(copy).lag(now=NOW) == HOUR
    given.run(copy, JobKind.DROP, started_at=NOW, ended_at=NOW)
    assert progress_now(copy).lag(now=NOW) is None


def test_what_is_not_followed_and_what_only_puts_files_together_waits_for_nobody() -> None:
    ignored = PIPELINE.replace("airlines: airlines", "airlines: {dataset: airlines, changes: ignored}")
    copy = modelled(ignored, TRANSFORM.replace("a.name", "f.carrier"))
    for name in ("flights", "airlines"):
        has_read(name, NOW - HOUR)
    committed("airlines", NOW - 10 * MINUTE)
    committed("flights", NOW - 10 * MINUTE, operation="cluster")
    assert (progress_now(copy).pending, progress_now(copy).lag(now=NOW)) == (0, timedelta())
    airlines = of_input(copy, "airlines")
    assert (airlines.pending, airlines.waits_since, airlines.read_upto) == (0, None, None)


def test_an_input_that_is_gone_is_told() -> None:
    copy = modelled()
    input_copy("airlines").dataset.__class__.objects.filter(name="airlines").update(offboarded_at=NOW)
    assert (of_input(copy, "airlines").copy, of_input(copy, "airlines").pending) == (None, None)


def test_counting_is_bounded_and_goes_by_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    copy = modelled()
    monkeypatch.setattr(progress, "MAX_PENDING", 3)
    has_read("flights", NOW - 8 * HOUR)
    for minutes in range(1, 9):
        committed("flights", NOW - minutes * MINUTE)
    assert (of_input(copy, "flights").pending, of_input(copy, "flights").has_more) == (4, True)
    assert progress_now(copy).waits_since == NOW - 8 * MINUTE
    (plan,) = (plan for plan in plans_of(lambda: progress_now(copy)) if re.search(READERS_INDEX, plan))
    assert len(re.findall(COMMITS_INDEX, plan)) == 4
    assert "commit_newest_of_copy" not in plan, "that would read all commits of a day"
    assert not re.search("(SCAN|Seq Scan on) ingestion_commit", plan)


def test_what_was_read_is_counted_up_to_the_same_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a day: two were completed before that."""
    copy = modelled()
    monkeypatch.setattr(progress, "MAX_PENDING", 3)
    for minutes in (*range(1, 9), 30 * 60, 40 * 60):
        committed("flights", NOW - minutes * MINUTE)
    for upto, processed, has_more in ((30 * 60 - 1, 0, False), (7, 3, False), (6, 4, True), (0, 4, True)):
        has_read("flights", NOW - upto * MINUTE)
        flights = of_input(copy, "flights")
        assert (flights.processed, flights.has_more_processed) == (processed, has_more), upto


def test_queries_do_not_grow_with_copies_and_inputs() -> None:
    copy = modelled()
    copies = [copy, given.copy(copy.dataset, "dc2"), given.copy(copy.dataset, "dc3")]
    counts = []
    for asked in (copies[:1], copies):
        with CaptureQueriesContext(connection) as queries:
            progress_of(asked, now=NOW)
        counts.append(len(queries))
    assert counts == [6, 6]


def test_the_api_has_it(client: Client) -> None:
    copy, now = modelled(), clock.now()
    committed("flights", now - 10 * MINUTE)
    given.commit(copy, now - 5 * MINUTE, inserts=3, updates=2, deletes=1)
    for name in ("flights", "airlines"):
        has_read(name, now - HOUR)
    client.force_login(given.user("guest"))
    (of_copy,) = client.get(PROGRESS).json()
    assert (of_copy["data_center"], of_copy["copy"], of_copy["pending"], 600 <= of_copy["lag_s"] < 660) == ("dc1", copy.pk, 1, True)  # fmt: skip
    assert of_copy["rows"] == {"inserted": 3, "updated": 2, "deleted": 1}
    assert (of_copy["newest_run"]["kind"], of_copy["newest_run"]["state"]) == ("bootstrap", "succeeded")
    assert [(each["name"], each["pending"], each["is_there"]) for each in of_copy["inputs"]] == [("flights", 1, True), ("airlines", 0, True)]  # fmt: skip
    assert client.get("/api/v1/datasets/flights/pipeline/progress").status_code == 404


def test_prometheus_has_it_without_a_name(client: Client) -> None:
    copy, now = modelled(), clock.now()
    committed("flights", now - 10 * MINUTE)
    given.commit(copy, now - 5 * MINUTE, inserts=3, updates=2, deletes=1)
    given.run(copy, JobKind.INCREMENTAL, JobState.FAILED)
    for name in ("flights", "airlines"):
        has_read(name, now - HOUR)
    metrics = client.get("/metrics").content.decode()
    assert f'lakehub_pipeline_commits_pending{{copy="{copy.pk}"}} 1.0' in metrics
    assert f'lakehub_pipeline_commits_processed{{copy="{copy.pk}"}} 0.0' in metrics
    assert f'lakehub_pipeline_rows{{copy="{copy.pk}",kind="deleted"}} 1.0' in metrics
    assert f'lakehub_pipeline_failing{{copy="{copy.pk}"}} 1.0' in metrics
    (lag_s,) = (line.rpartition(" ")[2] for line in metrics.splitlines() if line.startswith("lakehub_pipeline_lag_seconds{"))  # fmt: skip
    assert 600 <= float(lag_s) < 660
    assert "flights-by-day" not in metrics


def is_behind(now: datetime) -> bool:
    lag.judge_lags(now=now)
    return Finding.objects.filter(kind=PIPELINE_BEHIND, cleared_at=None).exists()


def test_a_pipeline_is_behind_for_longer_than_its_tier_allows() -> None:
    """It is not cleared before it is well below that."""
    copy = modelled()
    copy.dataset.overrides = {"freshness": "1h"}
    copy.dataset.save()
    for name in ("flights", "airlines"):
        has_read(name, NOW - 3 * HOUR)
    assert not is_behind(NOW)
    committed("flights", NOW - HOUR)
    assert not is_behind(NOW)
    assert is_behind(NOW + MINUTE)
    message = Finding.objects.get(kind=PIPELINE_BEHIND).detail["message"]
    assert "Changes of `flights` since 2026-11-17 18:32 UTC are not here yet: the pipeline is behind for 1 h 1 min" in message  # fmt: skip
    has_read("flights", NOW - HOUR)
    committed("flights", NOW - 40 * MINUTE)
    assert is_behind(NOW)
    has_read("flights", NOW - 40 * MINUTE)
    assert not is_behind(NOW)


def test_the_task_looks_and_leaves_what_has_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    copy = modelled()
    committed("flights", NOW - 30 * DAY)
    ReaderPosition.objects.create(copy=input_copy("flights"), name="pipeline flights-by-day", position=instant(NOW - 40 * DAY), seen_at=NOW, expires_at=NOW)  # fmt: skip
    monkeypatch.setattr("lakehub.wiring.clock.now", lambda: NOW)
    tasks.check_pipelines()
    assert Finding.objects.filter(copy=copy, kind=PIPELINE_BEHIND, cleared_at=None).exists()
    given.run(copy, JobKind.DROP, started_at=NOW, ended_at=NOW)
    tasks.check_pipelines()
    assert not Finding.objects.filter(copy=copy, kind=PIPELINE_BEHIND, cleared_at=None).exists()
