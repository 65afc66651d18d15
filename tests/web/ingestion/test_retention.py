"""Old runs and touched partitions go; what is still read from them stays."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ingestion.models import Commit, JobKind, JobRun, JobState, TouchedPartition
from ingestion.runs import feed_schedule, retention
from lakehub.catalog.models import DatasetCopy
from lakehub.db import batch_delete
from tests import factories
from tests.factories import DAY, NOW, day

pytestmark = pytest.mark.django_db
KEPT = timedelta(days=90)
LONG_AGO = NOW - 100 * DAY


@pytest.fixture
def copy() -> DatasetCopy:
    dataset = factories.dataset()
    factories.feed(dataset)
    return factories.copy_of(dataset)


def ran(copy: DatasetCopy, kind: JobKind = JobKind.INCREMENTAL, state: JobState = JobState.SUCCEEDED) -> JobRun:
    return factories.run(copy, kind, state, started_at=LONG_AGO, ended_at=LONG_AGO)


def test_runs_that_ended_long_ago_go_and_their_commits_stay(copy: DatasetCopy) -> None:
    old, newest = ran(copy), ran(copy)
    Commit.objects.filter(pk=factories.commit(copy, LONG_AGO).pk).update(run=old)
    assert retention.delete_old_runs(now=NOW, retention=KEPT) == 1
    assert list(JobRun.objects.all()) == [newest]
    assert Commit.objects.get().run is None


def test_the_newest_of_each_kind_and_state_stays_so_that_nothing_is_loaded_twice(copy: DatasetCopy) -> None:
    ran(copy, JobKind.BOOTSTRAP)
    ran(copy, state=JobState.FAILED)
    ran(copy)
    assert retention.delete_old_runs(now=NOW, retention=KEPT) == 0
    assert [run.kind for run in feed_schedule.request_due_runs(now=NOW)] == [JobKind.INCREMENTAL]


def test_a_run_that_waits_stays_however_old(copy: DatasetCopy) -> None:
    waiting = factories.run(copy, JobKind.BACKFILL, JobState.QUEUED, due_at=LONG_AGO, started_at=None, ended_at=None)
    factories.run(copy, JobKind.BACKFILL, JobState.QUEUED, started_at=None, ended_at=None)
    retention.delete_old_runs(now=NOW, retention=KEPT)
    assert JobRun.objects.filter(pk=waiting.pk).exists()


def test_touched_partitions_go_once_they_were_claimed(copy: DatasetCopy) -> None:
    factories.commit(copy, LONG_AGO, touched=[day("2026-08-01"), day("2026-08-02")])
    unclaimed = TouchedPartition.objects.order_by("pk")[0]
    TouchedPartition.objects.filter(pk=unclaimed.pk).update(claimed_at=None)
    factories.commit(copy, touched=[day("2026-08-01")])
    assert retention.delete_old_touched_partitions(now=NOW, retention=KEPT) == 1
    assert TouchedPartition.objects.count() == 2
    assert TouchedPartition.objects.filter(pk=unclaimed.pk).exists()


def test_touched_partitions_of_the_future_stay_until_their_time_comes(copy: DatasetCopy) -> None:
    factories.commit(copy, LONG_AGO, touched=[day("2031-01-01")])
    assert retention.delete_old_touched_partitions(now=NOW, retention=KEPT) == 0
    assert retention.delete_old_touched_partitions(now=day("2031-01-02").start, retention=KEPT) == 1


def test_it_goes_on_over_many_batches_and_ends_at_what_is_young(
    copy: DatasetCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_delete, "BATCH_SIZE", 2)
    for _ in range(6):
        ran(copy)
    young = factories.run(copy)
    assert retention.delete_old_runs(now=NOW, retention=KEPT) == 6
    assert list(JobRun.objects.all()) == [young]
