"""A dataset by its name, and the runs that are going on for it: what the frame and onboarding share."""

from __future__ import annotations

from django.db.models import QuerySet

from ingestion.models import JobRun
from ingestion.runs.job_runs import ACTIVE
from lakehub.catalog.models import Dataset


def dataset_named(name: str) -> QuerySet[Dataset]:
    return (
        Dataset.objects.filter(name=name)
        .select_related("team", "feed__connection")
        .prefetch_related("copies__data_center")
    )


def live_runs(dataset: Dataset) -> QuerySet[JobRun]:
    return JobRun.objects.filter(copy__dataset=dataset, state__in=ACTIVE).select_related("copy__data_center")
