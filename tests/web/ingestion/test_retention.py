"""Old runs and touched partitions go; what is still read from them stays."""

from __future__ import annotations

import os
from datetime import timedelta
from multiprocessing.process import current_process
from multiprocessing.util import get_temp_dir
from pathlib import Path
from uuid import uuid4

import pytest
from celery import signals

import lakehub.processes.celery_app  # noqa: F401  # what a worker does when it starts
from ingestion import tasks
from ingestion.models import Commit, JobKind, JobRun, JobState, TouchedPartition
from ingestion.runs import feed_schedule, retention
from lakehub import scratch
from lakehub.catalog.models import DatasetCopy
from lakehub.db import batch_delete
from tests import factories
from tests.factories import DAY, HOUR, NOW, day

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


def test_a_run_whose_lineage_may_still_be_sent_stays(copy: DatasetCopy) -> None:
    old, _ = ran(copy), ran(copy)
    JobRun.objects.filter(pk=old.pk).update(owes_lineage=True)
    assert retention.delete_old_runs(now=LONG_AGO + 6 * DAY, retention=DAY) == 0
    assert retention.delete_old_runs(now=LONG_AGO + 8 * DAY, retention=DAY) == 1


def test_the_newest_of_each_kind_and_state_stays_so_that_nothing_is_loaded_twice(copy: DatasetCopy) -> None:
    ran(copy, JobKind.BOOTSTRAP)
    ran(copy, state=JobState.FAILED)
    ran(copy)
    assert retention.delete_old_runs(now=NOW, retention=KEPT) == 0
    assert [run.kind for run in feed_schedule.request_due_runs(now=NOW)] == [JobKind.FOLLOW]


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


def test_commits_go_but_for_the_newest_of_a_copy_and_those_that_are_to_be_tested(
    copy: DatasetCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those on the timeline are among the newest: they would be taken for new ones."""
    monkeypatch.setattr(retention, "COMMITS_KEPT", 2)
    other = factories.copy_of(factories.dataset("other"))
    old = [factories.commit(each, LONG_AGO + number * HOUR) for each in (copy, other) for number in range(4)]
    factories.commit(copy, LONG_AGO, touched=[day("2026-08-01")])
    young = [factories.commit(copy) for _ in range(2)]
    assert retention.delete_old_commits(now=NOW, retention=KEPT) == 6
    kept = set(Commit.objects.filter(touched=None))
    assert kept == {*young, *old[6:]}
    assert Commit.objects.exclude(touched=None).count() == 1


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


def test_folders_of_jobs_go_when_nothing_needs_them(copy: DatasetCopy, tmp_path: Path) -> None:
    """What succeeded at once, what failed after a week; never that of a run which is to be tried again, nor anybody else's."""
    week = timedelta(days=7)
    states = {
        "succeeded": factories.run(copy, JobKind.INCREMENTAL),
        "failed long ago": factories.run(copy, JobKind.INCREMENTAL, JobState.FAILED, ended_at=NOW - week - HOUR),
        "failed": factories.run(copy, JobKind.INCREMENTAL, JobState.FAILED, ended_at=NOW - week + HOUR),
        "tried again": factories.run(copy, JobKind.BACKFILL, JobState.QUEUED, ended_at=None, due_at=LONG_AGO),
    }
    folders = {name: tmp_path / str(run.key) for name, run in states.items()}
    folders |= {
        "unknown": tmp_path / str(uuid4()),
        "unknown and new": tmp_path / str(uuid4()),
        "notes": tmp_path / "notes",
    }
    for folder in folders.values():
        folder.mkdir()
        (folder / "log.txt").write_text("x")
        os.utime(folder, ((NOW - 8 * DAY).timestamp(),) * 2)
    os.utime(folders["unknown and new"], (NOW.timestamp(),) * 2)
    for name in ("lakehub-old.zip", "lakehub-new.zip"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, ((NOW - (8 if "old" in name else 1) * DAY).timestamp(),) * 2)
    factories.run(copy, JobKind.DELETE, JobState.RUNNING, ended_at=None)
    removed = retention.delete_old_job_folders(tmp_path, now=NOW, wall=NOW)
    assert set(removed) == {folders[name] for name in ("succeeded", "failed long ago", "unknown")}
    assert [name for name, folder in folders.items() if folder.exists()] == [
        "failed", "tried again", "unknown and new", "notes",
    ]  # fmt: skip
    JobRun.objects.filter(state=JobState.RUNNING).delete()
    assert retention.delete_old_job_folders(tmp_path, now=NOW, wall=NOW) == [tmp_path / "lakehub-old.zip"]


def test_the_hourly_task_and_the_start_of_a_worker_sweep_what_killed_processes_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHUB_HOME", str(tmp_path))
    mine = scratch._owner_of(os.getpid())
    for sweep in (tasks.prune_history, lambda: signals.worker_init.send(sender=None)):
        left = tmp_path / "scratch" / f"{scratch.Owner(mine.host, mine.pid, mine.start - 1).name}~jvm1"
        left.mkdir(parents=True)
        sweep()
        assert not left.exists()


def test_what_a_worker_shares_through_files_is_in_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHUB_HOME", str(tmp_path))
    monkeypatch.setitem(current_process()._config, "tempdir", None)  # type: ignore[attr-defined]
    signals.worker_init.send(sender=None)
    assert Path(get_temp_dir()).parent == tmp_path / "scratch"  # type: ignore[no-untyped-call]
