"""Backfills go on: what became of a chunk is noted, and the next one is asked for, one at a time and behind what follows the inputs."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from ingestion.lake import findings
from ingestion.models import Backfill, BackfillChunk, BackfillState, ChunkState, JobKind, JobRun, JobState
from ingestion.runs import job_runs
from ingestion.runs.backfills.progress import newest_end
from ingestion.runs.backfills.requests import end_backfill, take_back_run
from ingestion.runs.copy_lag import has_table
from lakehub.kernel.errors import Conflict, Refused

PATIENCE = timedelta(minutes=15)
"""So long a chunk waits for incrementals of its copy, since the one before has ended: where the inputs change all the time there is always one."""
_MAX_NAMED = 10


def advance_backfills(*, now: datetime) -> list[JobRun]:
    """The runs that were asked for. A second call, or another process at the same time, changes nothing."""
    for chunk in ended_chunks():
        _note_outcome(chunk, now=now)
    for backfill in stopped_backfills():
        take_back_run(backfill, now=now)
    runs = [_advance(backfill, now=now) for backfill in open_backfills()]
    return [run for run in runs if run is not None]


def ended_chunks() -> QuerySet[BackfillChunk]:
    """Whose runs have ended, or are not there any more; also of backfills that have ended meanwhile."""
    at_work = BackfillChunk.objects.filter(state=ChunkState.RUNNING).select_related("run")
    return at_work.exclude(run__state__in=job_runs.ACTIVE)


def stopped_backfills() -> QuerySet[Backfill]:
    """Paused or ended, with a run that waits to be tried again: it had begun when they were stopped."""
    waiting = BackfillChunk.objects.filter(state=ChunkState.RUNNING, run__state__in=job_runs.PENDING)
    return Backfill.objects.exclude(state=BackfillState.RUNNING).filter(pk__in=waiting.values("backfill"))


def open_backfills() -> QuerySet[Backfill]:
    opened = Backfill.objects.filter(ended_at=None).order_by("pk")
    return opened.select_related("copy__dataset__feed", "copy__data_center", "copy__rebuild")


def _note_outcome(chunk: BackfillChunk, *, now: datetime) -> None:
    run = chunk.run
    known = BackfillChunk.objects.filter(pk=chunk.pk, state=ChunkState.RUNNING, run=chunk.run_id)
    if run is not None and run.state == JobState.SUCCEEDED:
        written = run.report.get("written") or {}
        known.update(state=ChunkState.SUCCEEDED, ended_at=run.ended_at or now, rows=sum(written.values()), error="")
        return
    why = "its run is gone" if run is None else run.error or f"run {run.pk} is {run.state}"
    known.update(state=ChunkState.FAILED, ended_at=(run and run.ended_at) or now, error=why)


def _advance(backfill: Backfill, *, now: datetime) -> JobRun | None:
    with transaction.atomic():
        # A person who pauses it, and another process, wait here.
        held = Backfill.objects.select_for_update().filter(pk=backfill.pk, ended_at=None).first()
        if held is None:
            return None
        if why := _why_gone(backfill):
            end_backfill(backfill, why, now=now)
            return None
        if held.state != BackfillState.RUNNING or backfill.copy.dataset.feed.paused:
            return None
        if BackfillChunk.objects.filter(backfill__copy=backfill.copy_id, state=ChunkState.RUNNING).exists():
            return None
        chunk = held.chunks.filter(state=ChunkState.WAITING).order_by("number").first()
        if chunk is None:
            _end(backfill, now=now)
            return None
        return None if _waits_for_writer(held, now=now) else _begin(backfill, chunk, now=now)


def _why_gone(backfill: Backfill) -> str:
    """Empty: it can go on."""
    copy = backfill.copy
    if copy.dataset.offboarded_at is not None:
        return f"Dataset `{copy.dataset.name}` was off-boarded."
    if copy.removed_at is not None:
        return f"{copy} was removed."
    return "" if has_table(copy) else f"The table of {copy} was dropped."


def _waits_for_writer(backfill: Backfill, *, now: datetime) -> bool:
    """An incremental of the copy waits or is at work: it comes first, unless that is so for too long."""
    due = JobRun.objects.filter(
        copy=backfill.copy_id, kind=JobKind.INCREMENTAL, state__in=(JobState.QUEUED, JobState.RUNNING)
    )
    since = max(filter(None, (newest_end(backfill), backfill.resumed_at)))
    # One that lies ahead was noted by a clock that was wrong, and holds nothing up.
    return timedelta() <= now - since < PATIENCE and due.exists()


def _begin(backfill: Backfill, chunk: BackfillChunk, *, now: datetime) -> JobRun | None:
    try:
        run = job_runs.request_run(
            backfill.copy, JobKind.BACKFILL, {"partitions": chunk.partitions}, asked_by=job_runs.SCHEDULE, now=now
        )
    except Conflict:
        return None  # asked again with the next look
    except Refused as problem:
        # The pipeline or its copy is not what it was: no later chunk would be taken either.
        end_backfill(backfill, str(problem), now=now)
        return None
    chunk.state, chunk.run, chunk.began_at = ChunkState.RUNNING, run, now
    chunk.save(update_fields=["state", "run", "began_at"])
    return run


def _end(backfill: Backfill, *, now: datetime) -> None:
    failed = list(backfill.chunks.filter(state=ChunkState.FAILED).order_by("number").select_related("run"))
    if not failed:
        Backfill.objects.filter(pk=backfill.pk).update(state=BackfillState.SUCCEEDED, ended_at=now)
        return
    numbers = ", ".join(str(chunk.number) for chunk in failed[:_MAX_NAMED])
    more = f" and {len(failed) - _MAX_NAMED:,} more" if len(failed) > _MAX_NAMED else ""
    share = f"{len(failed):,} of {backfill.chunks.count():,} chunks"
    error = f"{share} failed: {numbers}{more}. Try them again when what their errors name is mended."
    Backfill.objects.filter(pk=backfill.pk).update(state=BackfillState.FAILED, ended_at=now, error=error)
    # A chunk that succeeded later has cleared what its run had raised.
    if (run := next((chunk.run for chunk in failed if chunk.run is not None), None)) is not None:
        why = f"{share} of backfill {backfill.pk} failed; the first of them: {failed[0].error}"
        findings.raise_job_failing(run, why, now=now)
