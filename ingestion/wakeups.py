"""When the tasks of ingestion have something to do."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Min

from ingestion.models import CopyLease, JobKind, JobRun, JobState
from ingestion.runs import feed_schedule, job_runs
from ingestion.runs.sent_lineage.sending import owing_runs
from lakehub.catalog.models import DatasetCopy
from lakehub.processes.wakeups import Wakeup, earliest


def _next_run_at(now: datetime) -> datetime | None:
    """Where a job is at work, or a copy is leased, its process may end at any time. Followers look for what others left by themselves."""
    jobs = JobRun.objects.exclude(kind=JobKind.FOLLOW)
    if jobs.filter(state=JobState.RUNNING).exists() or CopyLease.objects.exclude(holder="").exists():
        return now
    waiting: datetime | None = jobs.filter(state__in=job_runs.READY).aggregate(at=Min("due_at"))["at"]
    return earliest(waiting, feed_schedule.next_request_at(now=now))


def _next_foreign_commit_at(now: datetime) -> datetime | None:
    """Other writers tell nobody: their timelines are looked at as long as there are any."""
    return now if DatasetCopy.objects.filter(dataset__ingested=True, dataset__offboarded_at=None).exists() else None


def _next_lineage_at(now: datetime) -> datetime | None:
    return now if settings.LAKEHUB_OPENLINEAGE_URL and owing_runs().exists() else None


WAKEUPS = (
    Wakeup("ingestion.tasks.start_due_runs", timedelta(seconds=30), on_change=True, next_due=_next_run_at),
    Wakeup(
        "ingestion.tasks.record_lake_commits",
        timedelta(hours=1),
        next_due=_next_foreign_commit_at,
        at_most_every=timedelta(seconds=10),
    ),
    Wakeup("ingestion.tasks.request_clusterings", timedelta(minutes=1)),
    Wakeup("ingestion.tasks.check_captured_copies", timedelta(minutes=5)),
    Wakeup("ingestion.tasks.check_pipelines", timedelta(minutes=5)),
    Wakeup("ingestion.tasks.check_replicas", timedelta(minutes=5)),
    Wakeup("ingestion.tasks.check_lineage", timedelta(minutes=1)),
    Wakeup("ingestion.tasks.check_tables", timedelta(minutes=1)),
    Wakeup(
        "ingestion.tasks.send_lineage",
        timedelta(hours=1),
        next_due=_next_lineage_at,
        at_most_every=timedelta(seconds=30),
    ),
    Wakeup("ingestion.tasks.prune_history", timedelta(hours=1)),
)
