"""A dataset's tests as rows: one a test and copy, with the data range that is worst and the last ones as a line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from django.db.models import Count, F, Q, QuerySet, Window
from django.db.models.expressions import OrderBy
from django.db.models.functions import RowNumber

from frontend.results.measurements import formula_text, observed_text, threshold_text
from frontend.results.reasons import REASON_TEXTS, unit_reason
from frontend.results.result_details import ResultDetails, result_details
from incidents.domain.incident.health import SILENCED_STATES
from incidents.models import Span
from incidents.record.health import VERDICT_RANK, VERDICT_RANK_CASE, CategoryHealth, DatasetHealth, live_units
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.interval import FOREVER
from quality.models import Category, QualityTest, Result, Unit

MAX_RUNS = 28
MAX_RERUNS = 500
_NEWEST = timedelta(days=3)
RowKey = tuple[int, int]
"""(test, copy)"""


@dataclass(frozen=True)
class QualityTestRow:
    test: QualityTest
    copy: DatasetCopy | None
    """None: it has not run anywhere yet."""
    unit: Unit | None
    state: str
    not_passing: int
    """How many of its data ranges do not pass."""
    spark_values: tuple[float, ...]
    reason: str

    @property
    def observed(self) -> str:
        return observed_text(self.unit) if self.unit else "–"

    @property
    def threshold(self) -> str:
        return threshold_text(self.unit) if self.unit else "–"

    @property
    def formula(self) -> str:
        return formula_text(self.test, self.unit)

    @property
    def result_details(self) -> ResultDetails | None:
        return result_details(self.unit) if self.unit else None

    @property
    def last_run_at(self) -> datetime | None:
        return self.unit.latest_at if self.unit else None

    @property
    def key(self) -> str:
        return f"{self.test.pk}-{self.copy.data_center.name if self.copy else ''}"


@dataclass(frozen=True)
class CategoryGroup:
    category: Category
    cell: CategoryHealth
    rows: list[QualityTestRow]


def rows_by_category(dataset: Dataset, health: DatasetHealth, *, now: datetime) -> list[CategoryGroup]:
    """By category, worst first. Five queries."""
    tests = list(dataset.tests.filter(retired_at=None).select_related("version").order_by("category", "title"))
    return _grouped_by_category(rows_of_tests(dataset, tests, health, now=now), health)


def rows_of_tests(
    dataset: Dataset, tests: Sequence[QualityTest], health: DatasetHealth, *, now: datetime
) -> list[QualityTestRow]:
    """Of each test a row a copy, in the order of the tests. Four queries."""
    copies = {copy.pk: copy for copy in dataset.copies.all()}
    ids = [test.pk for test in tests]
    worst, bad = _worst_units(ids, now), _not_passing_counts(ids, now)
    recent, lines = _recent_units(ids), _result_lines(ids)
    incident_by_unit = _open_incident_of_units(worst.values())
    copies_by_test: dict[int, list[int]] = defaultdict(list)
    for test_id, copy_id in {*worst, *recent}:
        copies_by_test[test_id].append(copy_id)
    rows = []
    for test in tests:
        test.dataset = dataset
        cell = health.cells.get(test.category, CategoryHealth(Category(test.category)))
        if test.pk not in copies_by_test:
            rows.append(_row_not_run(test))
        for copy_id in sorted(copies_by_test[test.pk], key=lambda pk: copies[pk].data_center.name):
            key, copy = (test.pk, copy_id), copies[copy_id]
            units = recent.get(key, [])
            unit = worst.get(key) or units[0]
            unit.test, unit.copy = test, copy
            line = lines.get(key) or tuple(
                recent_unit.observed for recent_unit in reversed(units) if recent_unit.observed is not None
            )
            why = _reason_text(unit, bad.get(key, 0), now)
            rows.append(
                QualityTestRow(
                    test,
                    copy,
                    unit,
                    _shown_state(unit, cell, incident_by_unit.get(unit.pk)),
                    bad.get(key, 0),
                    line,
                    why,
                )
            )
    return rows


def _row_not_run(test: QualityTest) -> QualityTestRow:
    """What is never planned is looked for all the time; any other test has to run first."""
    if not test.planned:
        return QualityTestRow(test, None, None, "pass", 0, (), "nothing found")
    return QualityTestRow(test, None, None, "unknown", 0, (), "not run yet")


def _grouped_by_category(rows: list[QualityTestRow], health: DatasetHealth) -> list[CategoryGroup]:
    groups = [
        CategoryGroup(Category(category), health.cells.get(category, CategoryHealth(Category(category))), list(members))
        for category, members in groupby(rows, key=lambda row: row.test.category)
    ]
    natural = list(Category)
    return sorted(groups, key=lambda group: (-VERDICT_RANK.get(group.cell.verdict, 0), natural.index(group.category)))


def _shown_state(unit: Unit, cell: CategoryHealth, incident: int | None) -> str:
    """The unit's verdict; where its incident goes by another name (snoozed, suppressed, in grace), it does too."""
    shown = cell.state if incident is None else cell.incidents.get(incident, "")
    return shown if shown in SILENCED_STATES and unit.verdict in ("fail", "warn") else unit.verdict


def _open_incident_of_units(units: Iterable[Unit]) -> dict[int, int]:
    """The open incident of each unit that fails."""
    active = Span.objects.filter(ended_at=None, unit__in=[unit.pk for unit in units])
    return dict(active.values_list("unit_id", "incident_id"))


def _reason_text(unit: Unit, bad: int, now: datetime) -> str:
    if unit.verdict == "pass":
        return REASON_TEXTS[unit.reason] if unit.reason in ("false_positive", "not_expected") else ""
    others = f"; {bad - 1} more" if bad > 1 else ""
    return unit_reason(unit, now=now, with_value=False) + others


def _first_units(units: QuerySet[Unit], most: int, *order: OrderBy) -> list[Unit]:
    """The first `most` units of each test and copy, in that order."""
    window = Window(RowNumber(), partition_by=[F("test"), F("copy")], order_by=list(order))
    return list(units.annotate(place=window).filter(place__lte=most).order_by("test", "copy", "place"))


def _worst_units(tests: Sequence[int], now: datetime) -> dict[RowKey, Unit]:
    units = live_units(now).filter(test__in=tests).exclude(verdict="pass")
    return {
        (unit.test_id, unit.copy_id): unit
        for unit in _first_units(units, 1, VERDICT_RANK_CASE.desc(), F("start").desc())
    }


def _not_passing_counts(tests: Sequence[int], now: datetime) -> dict[RowKey, int]:
    units = live_units(now).filter(test__in=tests).exclude(verdict="pass")
    rows = units.values_list("test_id", "copy_id").annotate(n=Count("pk")).order_by()
    return {(test, copy): n for test, copy, n in rows}


def _recent_units(tests: Sequence[int]) -> dict[RowKey, list[Unit]]:
    """The newest data ranges that were run, newest first."""
    ran = Unit.objects.filter(test__in=tests, latest_at__isnull=False)
    units_by_row: dict[RowKey, list[Unit]] = defaultdict(list)
    for unit in _first_units(ran, MAX_RUNS, F("start").desc()):
        units_by_row[unit.test_id, unit.copy_id].append(unit)
    return units_by_row


def _result_lines(tests: Sequence[int]) -> dict[RowKey, tuple[float, ...]]:
    """Tests of everything at once have one unit: their line is their last runs."""
    window = Window(RowNumber(), partition_by=[F("unit")], order_by=F("read_at").desc())
    results = Result.objects.filter(Q(unit__end=FOREVER), unit__test__in=tests, observed__isnull=False)
    rows = results.annotate(place=window).filter(place__lte=MAX_RUNS).order_by("unit", "-place")
    values_by_row: dict[RowKey, list[float]] = defaultdict(list)
    for test, copy, value in rows.values_list("unit__test_id", "unit__copy_id", "observed"):
        if value is not None:
            values_by_row[test, copy].append(value)
    return {key: tuple(line) for key, line in values_by_row.items()}


def units_worth_rerunning(units: QuerySet[Unit], *, now: datetime) -> list[int]:
    """What "run now" means: all that does not pass, tests of everything, and the newest data ranges that are due."""
    newest = now - _NEWEST
    chosen_units = units.filter(~Q(verdict="pass") | Q(end=FOREVER) | Q(start__gte=newest, latest_at__isnull=False))
    return list(chosen_units.values_list("pk", flat=True)[:MAX_RERUNS])
