"""What is due: a copy that was never loaded gets a bootstrap, every other one an incremental each time its feed's interval has passed."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, Max, OuterRef, Q, QuerySet

from ingestion import runs
from ingestion.domain.lag import dataset_lag
from ingestion.models import JobKind, JobRun, JobState
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Conflict


def ask_for_what_is_due(*, now: datetime) -> list[JobRun]:
    asked = [_ask(copy, JobKind.BOOTSTRAP, now) for copy in never_loaded(now=now)]
    asked += [_ask(copy, JobKind.INCREMENTAL, now) for copy in due_for_incremental(now=now)]
    return [run for run in asked if run is not None]


def fed() -> QuerySet[DatasetCopy]:
    """Copies that Lakehub feeds, and that no job is at work on."""
    at_work = JobRun.objects.filter(copy=OuterRef("pk"), state__in=runs.LIVE)
    live = DatasetCopy.objects.filter(dataset__ingested=True, dataset__offboarded_at=None, dataset__feed__paused=False)
    return live.filter(~Exists(at_work)).select_related("dataset__feed", "data_center")


def never_loaded(*, now: datetime) -> list[DatasetCopy]:
    """Loaded means: a bootstrap has succeeded since the last drop. One that was given up is asked for again after the feed's interval."""
    copies = fed().annotate(
        loaded=Max("runs__pk", filter=Q(runs__kind=JobKind.BOOTSTRAP, runs__state=JobState.SUCCEEDED)),
        dropped=Max("runs__pk", filter=Q(runs__kind=JobKind.DROP, runs__state=JobState.SUCCEEDED)),
        failed_at=Max("runs__ended_at", filter=Q(runs__kind=JobKind.BOOTSTRAP, runs__state=JobState.FAILED)),
    )
    return [
        copy
        for copy in copies
        if (copy.loaded is None or (copy.dropped or 0) > copy.loaded)
        and (copy.failed_at is None or copy.failed_at + copy.dataset.feed.every <= now)
    ]


def due_for_incremental(*, now: datetime) -> list[DatasetCopy]:
    copies = fed().annotate(
        loaded=Max("runs__pk", filter=Q(runs__kind=JobKind.BOOTSTRAP, runs__state=JobState.SUCCEEDED)),
        dropped=Max("runs__pk", filter=Q(runs__kind=JobKind.DROP, runs__state=JobState.SUCCEEDED)),
        last_at=Max("runs__started_at", filter=Q(runs__kind__in=[JobKind.BOOTSTRAP, JobKind.INCREMENTAL])),
    )
    return [
        copy
        for copy in copies
        if copy.loaded is not None
        and copy.loaded > (copy.dropped or 0)
        and copy.last_at is not None
        and copy.last_at + copy.dataset.feed.every <= now
    ]


def lag_of(copy: DatasetCopy, *, now: datetime) -> timedelta | None:
    """How far the copy is behind its source: zero where the last look took everything in, None where it was not looked at for too long."""
    looks = copy.runs.filter(kind__in=[JobKind.BOOTSTRAP, JobKind.INCREMENTAL])
    heard_at = looks.filter(state=JobState.SUCCEEDED).aggregate(at=Max("started_at"))["at"]
    if heard_at is None:
        return None
    failing = looks.filter(
        state__in=[JobState.FAILED, JobState.QUEUED], attempt__gt=0, started_at__gt=heard_at
    ).exists()
    pending = heard_at if failing else None
    return dataset_lag(oldest_pending_at=pending, heard_at=heard_at, every=copy.dataset.feed.every, now=now)


def _ask(copy: DatasetCopy, kind: JobKind, now: datetime) -> JobRun | None:
    try:
        return runs.ask(copy, kind, asked_by=runs.SCHEDULE, now=now)
    except Conflict:
        # Another scheduler was faster.
        return None
