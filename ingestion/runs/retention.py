"""What ingestion keeps for a while: the runs of its jobs and their folders, commits, and which partitions each touched."""

from __future__ import annotations

import shutil
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, Subquery

from ingestion.lake.captured import hours
from ingestion.models import Backfill, CaptureHour, Commit, JobRun, JobState, SourceHour, TouchedPartition
from ingestion.runs.job_specs import run_key_of
from ingestion.runs.sent_lineage.owing import MAX_AGE
from ingestion.spark.tables.timeline import MIN_COMMITS_KEPT
from lakehub.db.batch_delete import delete_old_rows

COMMITS_KEPT = 10 * MIN_COMMITS_KEPT
"""Of each copy. Its timeline has fewer that are older than the time for which it keeps them."""
JOB_FOLDERS_KEPT = timedelta(days=7)
"""Specs, reports and logs of jobs that failed."""


def delete_old_runs(*, now: datetime, retention: timedelta) -> int:
    """Deletes runs that ended longer ago than `retention`; their commits stay.

    The newest of a copy, kind and state stays however old: whether the copy is loaded, when it was looked at last and
    since when a job fails is read from it. So does one whose lineage may still be sent.
    """
    newer = JobRun.objects.filter(
        copy=OuterRef("copy"), kind=OuterRef("kind"), state=OuterRef("state"), pk__gt=OuterRef("pk")
    )
    is_owing = Q(owes_lineage=True, ended_at__gt=now - MAX_AGE)
    return delete_old_rows(
        JobRun.objects.all(), age="ended_at", before=now - retention, where=Q(Exists(newer)) & ~is_owing
    )


def delete_old_backfills(*, now: datetime, retention: timedelta) -> int:
    """Deletes backfills that ended longer ago than `retention`, with their chunks."""
    return delete_old_rows(Backfill.objects.all(), age="ended_at", before=now - retention)


def delete_old_job_folders(folder: Path, *, now: datetime, wall: datetime) -> list[Path]:
    """Removes what `spark_submit` left of jobs that succeeded, or ended otherwise longer ago than JOB_FOLDERS_KEPT, and the code
    that none of them uses any more. What a run needs that waits, runs or is tried again stays. Returns what was removed.

    `wall`: the time of files, where `now` is that of runs.
    """
    if not folder.is_dir():
        return []
    by_key = {key: path for path in folder.iterdir() if path.is_dir() and (key := _run_key(path.name)) is not None}
    runs = dict(JobRun.objects.filter(key__in=by_key).in_bulk(by_key, field_name="key"))
    ended = [path for key, path in by_key.items() if _is_over(runs.get(key), path, now, wall)]
    is_idle = not JobRun.objects.filter(state=JobState.RUNNING).exists()
    zips = [path for path in folder.glob("lakehub-*.zip") if is_idle and _age(path, wall) > JOB_FOLDERS_KEPT]
    for path in ended:
        shutil.rmtree(path, ignore_errors=True)  # again in an hour
    for path in zips:
        path.unlink(missing_ok=True)
    return [*ended, *zips]


def _is_over(run: JobRun | None, path: Path, now: datetime, wall: datetime) -> bool:
    if run is None or run.ended_at is None:
        # Of another database, or deleted with its dataset.
        return run is None and _age(path, wall) > JOB_FOLDERS_KEPT
    return run.state == JobState.SUCCEEDED or now - run.ended_at > JOB_FOLDERS_KEPT


def _run_key(name: str) -> UUID | None:
    with suppress(ValueError):
        return run_key_of(unquote(name))
    return None


def _age(path: Path, wall: datetime) -> timedelta:
    with suppress(FileNotFoundError):
        return wall - datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return timedelta()


def delete_old_commits(*, now: datetime, retention: timedelta) -> int:
    """Deletes commits that were completed longer ago than `retention`: a copy that is followed has one every few seconds.

    What is still to be tested stays, and so do the newest `COMMITS_KEPT` of a copy however old: those that are on the lake's timeline would
    be taken for new ones.
    """
    newest = Commit.objects.filter(copy=OuterRef("copy")).order_by("-completed_at").values("completed_at")
    beyond = Q(completed_at__lt=Subquery(newest[COMMITS_KEPT - 1 : COMMITS_KEPT]))
    touched = Exists(TouchedPartition.objects.filter(commit=OuterRef("pk")))
    return delete_old_rows(Commit.objects.all(), age="completed_at", before=now - retention, where=beyond & ~Q(touched))


def delete_old_capture_hours(*, now: datetime) -> int:
    """How long changes took, and what was counted of the source and of the log, by the hour."""
    before = now - hours.KEPT
    sources = delete_old_rows(SourceHour.objects.all(), age="start", before=before)
    return sources + delete_old_rows(CaptureHour.objects.all(), age="start", before=before)


def delete_old_touched_partitions(*, now: datetime, retention: timedelta) -> int:
    """Deletes touched partitions that were claimed longer ago than `retention`; what nobody has claimed is still to be tested.

    Those of the future stay until their time comes: that rows lie there is a finding until then.
    """
    return delete_old_rows(
        TouchedPartition.objects.all(), age="claimed_at", before=now - retention, where=Q(start__lte=now)
    )
