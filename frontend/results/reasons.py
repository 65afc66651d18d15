"""The line under a verdict: what was observed against what is needed, of which data."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from django.utils import timezone

from frontend.results.measurements import cause_text, counts_text, observed_text, threshold_text
from frontend.ui import words
from incidents.record.health import CategoryHealth
from lakehub.kernel.interval import Interval
from quality.models import Unit

_FORMULA_PREFIX = re.compile(r"^[a-z_]+\(.*\): (?=.)")
REASON_TEXTS = {
    "never_passed": "never passed yet",
    "error": "the last run could not be carried out",
    "no_data": "no data was found",
    "stale": "the last check is too old",
    "retest_overdue": "changed since the last check, and the retest is overdue",
    "period_too_long": "its sustain period or cadence is longer than 366 days: write a shorter one",
    "accepted": "accepted as it is",
    "false_positive": "resolved as a false positive",
    "not_expected": "not produced, by its calendar",
}


def example_units(cells: Iterable[CategoryHealth]) -> dict[int, Unit]:
    """One query: the example unit of each cell, with what its line needs."""
    unit_ids = [cell.example for cell in cells if cell.example is not None]
    units = Unit.objects.filter(pk__in=unit_ids).select_related("test__dataset", "test__version", "copy__data_center")
    return {unit.pk: unit for unit in units}


def cell_reason(cell: CategoryHealth, units: dict[int, Unit], *, now: datetime) -> str:
    """`Cross-dc consistency: 98.98%, needs > 99.9%, 16 Nov in dc2`."""
    unit = units.get(cell.example) if cell.example is not None else None
    reason_text = unit_reason(unit, now=now) if unit else _reason_without_unit(cell)
    more = f", and {words.count(cell.units - 1, 'other data range')}" if cell.units > 1 else ""
    return f"{cell.category.label.capitalize()}: {reason_text}{more}"


def unit_reason(unit: Unit, *, now: datetime, with_value: bool = True) -> str:
    """Why a unit is not passing, in one line, with the data that it is about."""
    where = f"{partition_label_of(unit)} in {unit.copy.data_center.name}"
    why = _reason_without_value(unit)
    if why:
        return f"{where}: {why}"
    value = f"{observed_text(unit)}{counts_text(unit)}, needs {threshold_text(unit)}, " if with_value else ""
    return f"{value}{where}{_turns_to_fail_text(unit, now)}"


def unit_reason_without_range(unit: Unit, *, now: datetime) -> str:
    """The same where the data is named beside it anyway."""
    return (
        _reason_without_value(unit)
        or f"{observed_text(unit)}{counts_text(unit)}, needs {threshold_text(unit)}{_turns_to_fail_text(unit, now)}"
    )


def _reason_without_value(unit: Unit) -> str:
    """Why there is no value to speak of; empty where there is one."""
    if unit.reason in REASON_TEXTS:
        return _without_formula(cause_text(unit)) or REASON_TEXTS[unit.reason]
    if unit.observed is None:
        return "not checked yet" if unit.latest_at is None else "nothing was observed"
    return ""


def _without_formula(cause: str) -> str:
    """Without the whole formula before it, which has a place of its own."""
    return _FORMULA_PREFIX.sub("", cause)


def partition_label_of(unit: Unit) -> str:
    dataset = unit.test.dataset
    return words.partition(Interval(unit.start, unit.end), dataset.partition_grain, dataset.zone)


def _turns_to_fail_text(unit: Unit, now: datetime) -> str:
    if unit.first_fail_at is None or unit.sustain is None or unit.verdict != "warn" or unit.reason != "in_sustain":
        return ""
    at = words.clock(unit.first_fail_at + unit.sustain, zone=timezone.get_current_timezone(), now=now)
    return f"; turns to fail at {at} if reruns do not pass"


def _reason_without_unit(cell: CategoryHealth) -> str:
    if cell.incident is not None:
        return cell.incident.title
    return "not checked yet"
