"""Runs that wait for an input, and pipelines elsewhere: what they told, and by which hooks."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from frontend import words
from ingestion.models import BlockedInput, JobRun, JobState
from ingestion.runs import described
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import Interval
from quality.models import FinishedRun, PipelineHook

_FINISHED = 10


@dataclass(frozen=True)
class Waiting:
    """A run, and each input that it waits for with the range in words."""

    run: JobRun
    inputs: list[tuple[BlockedInput, str]]


@dataclass(frozen=True)
class Finished:
    run: FinishedRun
    wrote: str


def waiting(dataset: Dataset) -> list[Waiting]:
    """Longest first. Two queries."""
    runs = described(JobRun.objects.filter(copy__dataset=dataset, state=JobState.WAITING)).order_by("waits_since", "pk")
    return [Waiting(run, [(one, _range(one, one.copy.dataset)) for one in run.blocked_by.all()]) for run in runs]


def finished(dataset: Dataset) -> list[Finished]:
    """Newest first."""
    told = FinishedRun.objects.filter(copy__dataset=dataset).select_related("copy__data_center")
    return [Finished(run, _range(run, dataset)) for run in told.order_by("-told_at", "-pk")[:_FINISHED]]


def hooks(dataset: Dataset) -> QuerySet[PipelineHook]:
    """Those that may tell of the dataset."""
    live = PipelineHook.objects.filter(Q(dataset=dataset) | Q(dataset=None, team=dataset.team_id), revoked_at=None)
    return live.select_related("created_by")


def _range(row: BlockedInput | FinishedRun, dataset: Dataset) -> str:
    return words.data_range(Interval(row.start, row.end), dataset.partition_grain, dataset.zone)
