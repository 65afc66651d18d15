"""What the runs of pipelines cost and how many fail, of many copies at once: for Prometheus."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce

from ingestion.models import JobRun, JobState
from ingestion.runs.modelled_tables.progress import MAKING_KINDS, ROW_KINDS
from ingestion.spark.contract.report import NOTHING_TO_DO
from lakehub.catalog.models import DatasetCopy

COUNTED_RUNS = 100
"""Of a copy, the newest: among so many those that failed are counted. A day of runs, by the usual interval."""
_ENDED = (JobState.SUCCEEDED, JobState.FAILED)


@dataclass(frozen=True)
class RunCosts:
    """Of a copy's newest run that makes rows and has ended. `seconds` and `core_s`: that its last try took; None: it was ended from outside, or nobody counted. `compared_bytes`: of the files of inputs that it
    compared; None: it read whole tables, or ended before it could tell. `failed_runs`: among the newest COUNTED_RUNS of the copy."""

    seconds: float | None
    core_s: float | None
    rows: Mapping[str, int]
    compared_bytes: int | None
    failed_runs: int


def run_costs_of(copies: Collection[DatasetCopy]) -> dict[int, RunCosts]:
    """By copy, of those of which such a run has ended. One query."""
    ended = JobRun.objects.filter(kind__in=MAKING_KINDS, state__in=_ENDED)
    newest = ended.filter(copy=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    newest_of_each = DatasetCopy.objects.filter(pk__in=[copy.pk for copy in copies]).values(newest=Subquery(newest))
    recent = JobRun.objects.filter(copy=OuterRef(OuterRef("copy"))).order_by("-pk").values("pk")[:COUNTED_RUNS]
    failed = JobRun.objects.filter(pk__in=recent, kind__in=MAKING_KINDS, state=JobState.FAILED).order_by()
    counted = failed.values("copy").annotate(count=Count("pk")).values("count")
    runs = JobRun.objects.filter(pk__in=newest_of_each).annotate(failed_runs=Coalesce(Subquery(counted), 0))
    reported = ("status", "phases__total", "core_s", "written", "output__inputs")
    facts = runs.values_list("copy", "failed_runs", *(f"report__{fact}" for fact in reported))
    return {copy: _costs(failed_runs, *of_report) for copy, failed_runs, *of_report in facts}


def _costs(
    failed_runs: int, status: str | None, seconds: float | None, core_s: float | None, written: Any, inputs: Any
) -> RunCosts:
    keys = written or {}
    rows = (keys.get("inserts", 0), keys.get("updates", 0), keys.get("deletes", 0))
    compared = sum(each["bytes"] for each in inputs.values()) if inputs else 0 if status == NOTHING_TO_DO else None
    return RunCosts(seconds, core_s, dict(zip(ROW_KINDS, rows, strict=True)), compared, failed_runs)
