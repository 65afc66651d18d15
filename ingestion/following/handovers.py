"""Batches that take longer than a process that follows many copies may give them: an ordinary `incremental` of the other lane reads them, with the
deadline of the feed. The copy is not looked at meanwhile, and is followed again once that run has ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from ingestion.models import JobKind, JobRun, JobState
from ingestion.runs import job_runs
from ingestion.runs.job_specs import BATCH_DEADLINE_S
from ingestion.spark.contract.report import JobReport
from lakehub.catalog.datasets.feed_options import effective_options
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Conflict

_MAY_TRY_AGAIN_S = BATCH_DEADLINE_S / 2
"""The batch after a run that took longer is handed over too, and is not tried here first."""


@dataclass(frozen=True)
class HandedOver:
    """`run`: the number of the run that reads the batch."""

    run: int

    @property
    def why(self) -> str:
        return (
            f"What is new takes longer to read and write than the {BATCH_DEADLINE_S:g} s of a batch: the incremental run {self.run} does it, "
            "with the deadline of the feed. Following goes on when that has ended."
        )


def newest_of(copy: DatasetCopy) -> JobRun | None:
    """The run that this copy's latest long batch was handed to. Nothing else asks for an incremental by itself."""
    asked_for = JobRun.objects.filter(copy=copy, kind=JobKind.INCREMENTAL, asked_by=job_runs.SCHEDULE)
    return asked_for.order_by("-pk").first()


def is_under_way(run: JobRun) -> bool:
    return run.state in job_runs.ACTIVE


def is_next_too_long(run: JobRun | None) -> bool:
    """Whether the batch after this one is handed over untried: this one was given up, or took long where it had the time."""
    if run is None:
        return False
    took_s: float = run.report.get("phases", {}).get("total", 0.0)
    return run.state == JobState.FAILED or (run.state == JobState.SUCCEEDED and took_s > _MAY_TRY_AGAIN_S)


def is_too_long(run: JobRun, report: JobReport) -> bool:
    """Whether a batch of the follow run `run` has failed for want of time that a run of its own would have."""
    return report.timed_out and _deadline_s(run.copy) > BATCH_DEADLINE_S


def hand_over(run: JobRun, *, now: datetime) -> HandedOver | None:
    """Asks for an incremental. Where somebody has asked for one already, that reads the batch; None where it has just ended.

    Raises Refused. To start regardless of the gate holds for the new run, and for this one no more.
    """
    try:
        with transaction.atomic():
            taker = job_runs.request_run(run.copy, JobKind.INCREMENTAL, asked_by=job_runs.SCHEDULE, now=now)
            _pass_regardless_on(run, taker)
    except Conflict:
        others = JobRun.objects.filter(copy=run.copy, kind=JobKind.INCREMENTAL, state__in=job_runs.ACTIVE)
        number = others.values_list("pk", flat=True).first()
        return None if number is None else HandedOver(number)
    return HandedOver(taker.pk)


def state_of(handed_over: HandedOver) -> str | None:
    """Of the run that reads the batch; None: it was deleted."""
    states = JobRun.objects.filter(pk=handed_over.run).values_list("state", flat=True)
    return states.first()


def _pass_regardless_on(run: JobRun, taker: JobRun) -> None:
    if run.regardless_by:
        operator = {"regardless_by": run.regardless_by, "regardless_why": run.regardless_why}
        JobRun.objects.filter(pk=taker.pk).update(**operator)
        JobRun.objects.filter(pk=run.pk).update(regardless_by="", regardless_why="")


def _deadline_s(copy: DatasetCopy) -> float:
    return float(effective_options(copy.dataset.feed.options)["deadline_s"])
