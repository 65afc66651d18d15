"""One test: what it asks and asked before, where it does not pass, and every result that is kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, QuerySet

from frontend.results.measurements import cause_text, counts_text, observed_text, threshold_text
from frontend.results.reasons import unit_reason_without_range
from frontend.ui import words
from incidents.models import Span
from incidents.record.health import VERDICT_RANK_CASE, live_units
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.interval import Interval
from quality.models import QualityTest, QualityTestVersion, Result, Unit

PAGE_SIZE = 25
"""On one page."""
MAX_UNITS = 20
TRIGGER_LABELS = {
    "schedule": "schedule",
    "rerun": "rerun",
    "late_data": "late data",
    "manual": "by hand",
    "baseline": "baseline",
    "finding": "ingestion",
}


@dataclass(frozen=True)
class UnitNotPassing:
    unit: Unit
    data: str
    reason: str
    incident: int | None


@dataclass(frozen=True)
class ResultRow:
    result: Result
    data: str
    observed: str
    threshold: str
    note: str
    trigger: str

    @property
    def state(self) -> str:
        return self.result.outcome if self.result.outcome in ("pass", "fail") else "unknown"

    @property
    def word(self) -> str:
        return self.result.outcome.replace("_", " ").capitalize()

    @property
    def took(self) -> timedelta:
        return self.result.ended_at - self.result.started_at


def schedule_text(version: QualityTestVersion) -> str:
    return f"every {words.duration(version.cadence)}" if version.cadence else "when a partition is due or changed"


def units_not_passing(test: QualityTest, dataset: Dataset, *, now: datetime) -> tuple[int, list[UnitNotPassing]]:
    """(how many do not pass, the worst of them, the newest first). Three queries."""
    units = live_units(now).filter(test=test).exclude(verdict="pass")
    worst_first = units.order_by(VERDICT_RANK_CASE.desc(), "-start", "copy")
    shown = list(worst_first.select_related("copy__data_center")[:MAX_UNITS])
    for unit in shown:
        unit.test = test
    spans = Span.objects.filter(unit__in=shown, ended_at=None).values_list("unit_id", "incident_id")
    incidents = dict(spans)
    rows = [
        UnitNotPassing(
            unit, _range_text(unit, dataset), unit_reason_without_range(unit, now=now), incidents.get(unit.pk)
        )
        for unit in shown
    ]
    return (units.count() if len(shown) == MAX_UNITS else len(shown)), rows


def results_of_test(test: QualityTest, copy: DatasetCopy | None, outcome: str = "") -> QuerySet[Result]:
    """Newest first."""
    results = Result.objects.filter(unit__test=test)
    results = results.filter(unit__copy=copy) if copy else results
    results = results.filter(outcome=outcome) if outcome else results
    return results.select_related("unit__copy__data_center", "version").order_by(F("read_at").desc(), "-pk")


def result_row_of(result: Result, dataset: Dataset) -> ResultRow:
    cause = cause_text(result) or counts_text(result).strip(" ()")
    trigger = TRIGGER_LABELS.get(result.trigger, result.trigger)
    return ResultRow(
        result, _range_text(result.unit, dataset), observed_text(result), threshold_text(result), cause, trigger
    )


def _range_text(unit: Unit, dataset: Dataset) -> str:
    return words.partition(Interval(unit.start, unit.end), dataset.partition_grain, dataset.zone)
