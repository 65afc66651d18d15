"""One test: what it asks and asked before, where it does not pass, and every result that is kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F, QuerySet

from frontend import words
from frontend.observed import behind, cause, needs, observed
from frontend.queries.reasons import bare_reason
from incidents.models import Span
from incidents.rollup import SEVERELY, live_units
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.interval import Interval
from quality.models import Result, Test, TestVersion, Unit

RESULTS = 25
"""On one page."""
BAD_UNITS = 20
TRIGGERS = {
    "schedule": "schedule",
    "rerun": "rerun",
    "late_data": "late data",
    "manual": "by hand",
    "baseline": "baseline",
    "finding": "ingestion",
}


@dataclass(frozen=True)
class BadUnit:
    unit: Unit
    data: str
    why: str
    incident: int | None


@dataclass(frozen=True)
class ResultRow:
    result: Result
    data: str
    observed: str
    needs: str
    said: str
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


def runs(version: TestVersion) -> str:
    return f"every {words.duration(version.cadence)}" if version.cadence else "when a partition is due or changed"


def bad_units(test: Test, dataset: Dataset, *, now: datetime) -> tuple[int, list[BadUnit]]:
    """(how many do not pass, the worst of them, the newest first). Three queries."""
    units = live_units(now).filter(test=test).exclude(verdict="pass")
    worst_first = units.order_by(SEVERELY.desc(), "-start", "copy")
    shown = list(worst_first.select_related("copy__data_center")[:BAD_UNITS])
    for unit in shown:
        unit.test = test
    spans = Span.objects.filter(unit__in=shown, ended_at=None).values_list("unit_id", "incident_id")
    incidents = dict(spans)
    rows = [BadUnit(one, _data(one, dataset), bare_reason(one, now=now), incidents.get(one.pk)) for one in shown]
    return (units.count() if len(shown) == BAD_UNITS else len(shown)), rows


def results(test: Test, copy: DatasetCopy | None, outcome: str = "") -> QuerySet[Result]:
    """Newest first."""
    found = Result.objects.filter(unit__test=test)
    found = found.filter(unit__copy=copy) if copy else found
    found = found.filter(outcome=outcome) if outcome else found
    return found.select_related("unit__copy__data_center", "version").order_by(F("read_at").desc(), "-pk")


def result_row(result: Result, dataset: Dataset) -> ResultRow:
    said = cause(result) or behind(result).strip(" ()")
    trigger = TRIGGERS.get(result.trigger, result.trigger)
    return ResultRow(result, _data(result.unit, dataset), observed(result), needs(result), said, trigger)


def _data(unit: Unit, dataset: Dataset) -> str:
    return words.partition(Interval(unit.start, unit.end), dataset.partition_grain, dataset.zone)
