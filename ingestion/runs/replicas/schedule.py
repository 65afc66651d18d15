"""When a replica is due: as soon as its source has a commit that was completed after the last run began, and now and then without one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import OuterRef, Subquery

from ingestion.models import Commit, JobKind, JobRun, JobState
from ingestion.runs.job_runs import ACTIVE
from lakehub.catalog.models import DatasetCopy

LOOK_EVERY = timedelta(hours=1)
"""A rollback makes no commit, and files that the source has no longer go after a time."""
RETRY_AFTER = timedelta(minutes=15)
"""Where a run was given up."""


def planned_replications(now: datetime) -> Iterator[tuple[DatasetCopy, JobKind, datetime]]:
    """Each replica that no job works on and whose source has commits, and when it is due."""
    at_work = JobRun.objects.filter(state__in=ACTIVE, kind__in=(JobKind.REPLICATE, JobKind.DROP)).values("copy")
    live = DatasetCopy.objects.filter(dataset__ingested=True, dataset__offboarded_at=None)
    replicas = live.filter(replica__isnull=False, replica__source__removed_at=None).exclude(pk__in=at_work)
    commits = Commit.objects.filter(copy=OuterRef("replica__source")).order_by("-completed_at")
    replicas = replicas.annotate(
        committed_at=Subquery(commits.values("completed_at")[:1]),
        began_at=_of_newest("started_at", JobKind.REPLICATE, JobState.SUCCEEDED),
        failed_at=_of_newest("ended_at", JobKind.REPLICATE, JobState.FAILED),
        dropped_at=_of_newest("ended_at", JobKind.DROP, JobState.SUCCEEDED),
    ).filter(committed_at__isnull=False)
    for copy in replicas.select_related("dataset__feed", "data_center"):
        times = (copy.committed_at, copy.began_at, copy.failed_at, copy.dropped_at)
        yield copy, JobKind.REPLICATE, _due_at(*times, now=now)


def _due_at(
    committed_at: datetime,
    began_at: datetime | None,
    failed_at: datetime | None,
    dropped_at: datetime | None,
    *,
    now: datetime,
) -> datetime:
    """Times that lie ahead were noted by a clock that was wrong, and hold nothing up."""
    if failed_at is not None and failed_at <= now and (began_at is None or began_at < failed_at):
        return failed_at + RETRY_AFTER
    if began_at is None or began_at > now or committed_at >= began_at:
        return now
    return now if dropped_at is not None and dropped_at > began_at else began_at + LOOK_EVERY


def _of_newest(fact: str, kind: JobKind, state: JobState) -> Subquery:
    runs = JobRun.objects.filter(copy=OuterRef("pk"), kind=kind, state=state)
    return Subquery(runs.order_by("-pk").values(fact)[:1])
