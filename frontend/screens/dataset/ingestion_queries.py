"""Runs that wait for an input, and pipelines elsewhere: what they told, and by which hooks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from frontend.components.runs.failures import failure_sentence
from frontend.components.runs.progress import run_progress
from frontend.screens.dataset.queries import recent_runs
from frontend.ui import words
from ingestion.lake.index_findings import index_sentence
from ingestion.models import BlockedInput, JobKind, JobRun, JobState
from ingestion.runs import failed_runs
from ingestion.runs.job_runs import with_details
from lakehub.catalog.models import MAX_COPIES, Dataset
from lakehub.kernel.interval import Interval
from quality.models import ExternalRun, PipelineHook

MAX_RUNS = 30
_MAX_EXTERNAL_RUNS = 10


@dataclass(frozen=True)
class RunRow:
    run: JobRun
    sentence: str
    """Why it failed, or what following has seen; else empty."""
    may_retry: bool


@dataclass(frozen=True)
class WaitingRun:
    """A run, and each input that it waits for with the range in words."""

    run: JobRun
    inputs: list[tuple[BlockedInput, str]]


@dataclass(frozen=True)
class ExternalRunRow:
    run: ExternalRun
    wrote: str


def run_rows(dataset: Dataset, *, may: Callable[[str], bool], now: datetime) -> list[RunRow]:
    """`may`: has the viewer this right? Those that follow copies now, then the newest, newest first. Four queries."""
    unresolved = set(failed_runs.unresolved_failures([dataset.pk]).values_list("pk", flat=True)[:MAX_RUNS])
    return [
        RunRow(run, _run_sentence(run, now), run.pk in unresolved and may(failed_runs.right_to_retry(run.kind)))
        for run in {run.pk: run for run in (*_following_runs(dataset), *recent_runs(dataset, MAX_RUNS))}.values()
    ]


def _following_runs(dataset: Dataset) -> QuerySet[JobRun]:
    following = JobRun.objects.filter(copy__dataset=dataset, kind=JobKind.FOLLOW, state=JobState.RUNNING)
    return with_details(following).order_by("pk")[:MAX_COPIES]


def _run_sentence(run: JobRun, now: datetime) -> str:
    if run.kind == JobKind.FOLLOW and run.state == JobState.RUNNING:
        return run_progress(run, now=now).sentence
    if run.kind == JobKind.VERIFY_INDEX and run.state == JobState.SUCCEEDED:
        return index_sentence(run.report["output"])
    return failure_sentence(run) if run.state == JobState.FAILED else ""


def waiting_runs(dataset: Dataset) -> list[WaitingRun]:
    """Longest first. Two queries."""
    runs = with_details(JobRun.objects.filter(copy__dataset=dataset, state=JobState.WAITING)).order_by(
        "waits_since", "pk"
    )
    return [
        WaitingRun(
            run,
            [
                (blocked_input, _range_text(blocked_input, blocked_input.copy.dataset))
                for blocked_input in run.blocked_by.all()
            ],
        )
        for run in runs
    ]


def external_run_rows(dataset: Dataset) -> list[ExternalRunRow]:
    """Newest first."""
    external_runs = ExternalRun.objects.filter(copy__dataset=dataset).select_related("copy__data_center")
    return [
        ExternalRunRow(run, _range_text(run, dataset))
        for run in external_runs.order_by("-reported_at", "-pk")[:_MAX_EXTERNAL_RUNS]
    ]


def run_hooks_of(dataset: Dataset) -> QuerySet[PipelineHook]:
    """Those that may tell of the dataset."""
    live = PipelineHook.objects.filter(Q(dataset=dataset) | Q(dataset=None, team=dataset.team_id), revoked_at=None)
    return live.select_related("created_by")


def _range_text(row: BlockedInput | ExternalRun, dataset: Dataset) -> str:
    return words.data_range(Interval(row.start, row.end), dataset.partition_grain, dataset.zone)
