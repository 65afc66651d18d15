"""What is due: a copy that was never loaded gets a bootstrap, every other one an incremental each time its feed's interval has passed.

Loaded means: a bootstrap has succeeded since the last drop. One that was given up is asked for again after the feed's interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.models import OuterRef, QuerySet, Subquery

from ingestion.models import JobKind, JobRun, JobState
from ingestion.runs import job_runs
from lakehub.catalog.models import DatasetCopy, FeedKind
from lakehub.kernel.errors import Conflict


def request_due_runs(*, now: datetime) -> list[JobRun]:
    """What is known of a copy's newest runs is a look into an index for each, however many there were."""
    due = [(copy, kind) for copy, kind, at in _planned_requests(now) if at <= now]
    requested_runs = [_request(copy, kind, now) for copy, kind in due]
    return [run for run in requested_runs if run is not None]


def next_request_at(*, now: datetime) -> datetime | None:
    """When the first of the copies that are idle now is asked for; None: none is fed."""
    return min((at for _, _, at in _planned_requests(now)), default=None)


def _planned_requests(now: datetime) -> Iterator[tuple[DatasetCopy, JobKind, datetime]]:
    """Each idle copy with the job that is next, and when it is due: at once where nothing has been tried before."""
    copies = idle_fed_copies().annotate(
        loaded=_newest_run_value("pk", kind=JobKind.BOOTSTRAP, state=JobState.SUCCEEDED),
        dropped=_newest_run_value("pk", kind=JobKind.DROP, state=JobState.SUCCEEDED),
        failed_at=_newest_run_value("ended_at", kind=JobKind.BOOTSTRAP, state=JobState.FAILED),
        began_at=_newest_run_value("started_at", kind=JobKind.BOOTSTRAP, started_at__isnull=False),
        looked_at=_newest_run_value("started_at", kind=JobKind.INCREMENTAL, started_at__isnull=False),
    )
    for copy in copies:
        is_loaded = (copy.loaded or 0) > (copy.dropped or 0)
        last = (copy.looked_at, copy.began_at) if is_loaded else (copy.failed_at,)
        # One that lies ahead was noted by a clock that was wrong, and holds nothing up.
        known = [at + copy.dataset.feed.every if at <= now else now for at in last if at is not None]
        yield copy, JobKind.INCREMENTAL if is_loaded else JobKind.BOOTSTRAP, max(known, default=now)


def idle_fed_copies() -> QuerySet[DatasetCopy]:
    """Copies that jobs load from a connection, and that no job is at work on; also those that are being built."""
    at_work = JobRun.objects.filter(state__in=job_runs.ACTIVE).values("copy")
    live = DatasetCopy.with_removed.filter(removed_at=None, dataset__ingested=True, dataset__offboarded_at=None)
    fed = live.filter(dataset__feed__kind=FeedKind.CONNECTION, dataset__feed__paused=False)
    return fed.exclude(pk__in=at_work).select_related("dataset__feed", "data_center")


def _newest_run_value(fact: str, **which: object) -> Subquery:
    return Subquery(JobRun.objects.filter(copy=OuterRef("pk"), **which).order_by("-pk").values(fact)[:1])


def _request(copy: DatasetCopy, kind: JobKind, now: datetime) -> JobRun | None:
    try:
        return job_runs.request_run(copy, kind, asked_by=job_runs.SCHEDULE, now=now)
    except Conflict:
        # Another scheduler was faster.
        return None
