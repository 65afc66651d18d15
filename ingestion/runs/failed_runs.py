"""Runs that were given up and that nothing has followed yet; runs that failed and are tried again; and trying again by hand."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from ingestion.models import JobKind, JobRun, JobState, ReplayRequest
from ingestion.runs import job_runs
from ingestion.runs.requests.params import DECIDED
from lakehub.kernel.errors import Conflict, Refused

DESTRUCTIVE_KINDS = (JobKind.DELETE, JobKind.DROP)
"""To ask for one of them, also again, needs the right to off-board."""


def right_to_retry(kind: str) -> str:
    """What it takes to ask for such a job again: as much as to ask for it."""
    if kind in DESTRUCTIVE_KINDS:
        return "offboard"
    return "onboard" if kind in (JobKind.REPLAY, JobKind.SET_POSITION) else "rerun"


def unresolved_failures(datasets: Collection[int]) -> QuerySet[JobRun]:
    """Newest first: failed runs of these datasets with no later run of the same kind on the same copy that counts."""
    later = JobRun.objects.filter(copy=OuterRef("copy"), kind=OuterRef("kind"), pk__gt=OuterRef("pk"))
    failed = JobRun.objects.filter(state=JobState.FAILED, copy__dataset__in=datasets)
    return _with_copies(failed.exclude(Exists(later.exclude(state=JobState.CANCELLED)))).order_by("-ended_at", "-pk")


def retrying_runs(datasets: Collection[int]) -> QuerySet[JobRun]:
    """Runs of these datasets that failed at least once, and that the schedule tries again at `due_at`."""
    queued = JobRun.objects.filter(state=JobState.QUEUED, attempt__gt=0, copy__dataset__in=datasets)
    return _with_copies(queued.exclude(error="")).order_by("due_at", "pk")


def is_unresolved(run: JobRun) -> bool:
    """Whether trying it again is what is left to do."""
    return unresolved_failures([run.copy.dataset_id]).filter(pk=run.pk).exists()


def retry_run(run: JobRun, *, actor: str, now: datetime) -> JobRun:
    """The same job once more, as a run of its own. Raises Conflict where it has not failed or was followed already."""
    with transaction.atomic():
        # Of two people who ask at once, the second waits here and finds the first one's run.
        list(JobRun.objects.select_for_update().filter(pk=run.pk))
        if not is_unresolved(run):
            raise Conflict(
                f"Run {run.pk} of {run.copy} did not fail last, or was tried again already. Nothing was changed."
            )
        if any(name in run.params for name in DECIDED):
            raise Refused(
                f"Run {run.pk} did what somebody decided over a refused batch: decide again, on the page Pipeline of `{run.copy.dataset.name}`. Nothing was changed."
            )
        replay = ReplayRequest.objects.filter(run=run).first()
        return job_runs.request_run(
            run.copy, run.kind, run.params, asked_by=actor, now=now, replay=replay, is_checked=True
        )


def _with_copies(runs: QuerySet[JobRun]) -> QuerySet[JobRun]:
    live = runs.filter(copy__dataset__offboarded_at=None, copy__removed_at=None) | runs.filter(kind=JobKind.DROP)
    return live.select_related("copy__dataset__team", "copy__data_center")
