"""A dataset by its name, and the runs that are going on for it: what the frame and onboarding share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Prefetch, QuerySet

from frontend.components.runs.progress import RunProgress, run_progress
from ingestion.models import JobKind, JobRun
from ingestion.runs.job_runs import ACTIVE
from lakehub.catalog.models import Dataset, DatasetCopy

MAX_LIVE_RUNS = 12


def dataset_named(name: str) -> QuerySet[Dataset]:
    """With its copies, and from where those are replicated that are."""
    copies = DatasetCopy.objects.select_related("replica__source__data_center")
    return (
        Dataset.objects.filter(name=name)
        .select_related("team", "feed__connection")
        .prefetch_related(Prefetch("copies", copies), "copies__data_center")
    )


@dataclass(frozen=True)
class LiveRun:
    run: JobRun
    progress: RunProgress


def live_runs(dataset: Dataset, *, now: datetime) -> list[LiveRun]:
    """What runs or waits, with how far it is, running ones first. That copies are followed is no news."""
    active = JobRun.objects.filter(copy__dataset=dataset, state__in=ACTIVE).exclude(kind=JobKind.FOLLOW, error="")
    runs = active.select_related("copy__data_center")
    return with_progress(runs.order_by(F("started_at").asc(nulls_last=True), "pk")[:MAX_LIVE_RUNS], now=now)


def with_progress(runs: Iterable[JobRun], *, now: datetime) -> list[LiveRun]:
    return [LiveRun(run, run_progress(run, now=now)) for run in runs]
