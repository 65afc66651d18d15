"""A dataset that is let go: its queue is emptied and its findings are closed. The lake's data stays until someone asks to drop it."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from ingestion.models import Finding, JobKind, JobRun, JobState
from ingestion.runs import job_runs
from lakehub.catalog.models import Dataset


def close_offboarded(*, now: datetime) -> int:
    """Take the waiting runs of off-boarded datasets and of copies that were removed out of the queue, and close their findings; how many rows changed."""
    left = Q(copy__dataset__offboarded_at__isnull=False) | Q(copy__removed_at__isnull=False)
    waiting = JobRun.objects.filter(left, state__in=job_runs.PENDING)
    cancelled = waiting.exclude(kind=JobKind.DROP).update(state=JobState.CANCELLED, ended_at=now)
    open_findings = Finding.objects.filter(left, cleared_at=None)
    return cancelled + open_findings.update(cleared_at=now)


def request_drops(dataset: Dataset, *, actor: str, now: datetime) -> list[JobRun]:
    """Ask for each copy, and its error table, to be removed from the lake. The history of runs and commits stays."""
    return [
        job_runs.request_run(copy, JobKind.DROP, asked_by=actor, now=now)
        for copy in dataset.copies.select_related("dataset")
    ]
