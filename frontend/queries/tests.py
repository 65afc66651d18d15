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

from frontend.observed import formula, needs, observed
from frontend.queries.reasons import reason_of
from frontend.seen import Seen, seen
from incidents.domain.rollup import QUIET
from incidents.models import Span
from incidents.rollup import SEVERELY, SEVERITY, Cell, Health, live_units
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.interval import FOREVER
from quality.models import Category, Result, Test, Unit

RUNS = 28
MOST_RERUNS = 500
_NEWEST = timedelta(days=3)
Key = tuple[int, int]
"""(test, copy)"""


@dataclass(frozen=True)
class TestRow:
    test: Test
    copy: DatasetCopy | None
    """None: it has not run anywhere yet."""
    unit: Unit | None
    state: str
    bad: int
    """How many of its data ranges do not pass."""
    line: tuple[float, ...]
    reason: str

    @property
    def observed(self) -> str:
        return observed(self.unit) if self.unit else "–"

    @property
    def needs(self) -> str:
        return needs(self.unit) if self.unit else "–"

    @property
    def formula(self) -> str:
        return formula(self.test, self.unit)

    @property
    def seen(self) -> Seen | None:
        return seen(self.unit) if self.unit else None

    @property
    def last_run_at(self) -> datetime | None:
        return self.unit.latest_at if self.unit else None

    @property
    def key(self) -> str:
        return f"{self.test.pk}-{self.copy.data_center.name if self.copy else ''}"


@dataclass(frozen=True)
class Group:
    category: Category
    cell: Cell
    rows: list[TestRow]


def test_groups(dataset: Dataset, health: Health, *, now: datetime) -> list[Group]:
    """By category, worst first. Five queries."""
    tests = list(dataset.tests.filter(retired_at=None).select_related("version").order_by("category", "title"))
    return _grouped(test_rows(dataset, tests, health, now=now), health)


def test_rows(dataset: Dataset, tests: Sequence[Test], health: Health, *, now: datetime) -> list[TestRow]:
    """Of each test a row a copy, in the order of the tests. Four queries."""
    copies = {copy.pk: copy for copy in dataset.copies.all()}
    ids = [test.pk for test in tests]
    worst, bad = _worst(ids, now), _bad(ids, now)
    recent, lines = _recent(ids), _result_lines(ids)
    told = _incidents(worst.values())
    seen: dict[int, list[int]] = defaultdict(list)
    for test_id, copy_id in {*worst, *recent}:
        seen[test_id].append(copy_id)
    rows = []
    for test in tests:
        test.dataset = dataset
        cell = health.cells.get(test.category, Cell(Category(test.category)))
        if test.pk not in seen:
            rows.append(_not_run(test))
        for copy_id in sorted(seen[test.pk], key=lambda pk: copies[pk].data_center.name):
            key, copy = (test.pk, copy_id), copies[copy_id]
            units = recent.get(key, [])
            unit = worst.get(key) or units[0]
            unit.test, unit.copy = test, copy
            line = lines.get(key) or tuple(one.observed for one in reversed(units) if one.observed is not None)
            why = _why(unit, bad.get(key, 0), now)
            rows.append(TestRow(test, copy, unit, _state(unit, cell, told.get(unit.pk)), bad.get(key, 0), line, why))
    return rows


def _not_run(test: Test) -> TestRow:
    """A finding is looked for all the time; any other test has to run first."""
    if test.check_name == "finding":
        return TestRow(test, None, None, "pass", 0, (), "nothing found")
    return TestRow(test, None, None, "unknown", 0, (), "not run yet")


def _grouped(rows: list[TestRow], health: Health) -> list[Group]:
    groups = [
        Group(Category(category), health.cells.get(category, Cell(Category(category))), list(members))
        for category, members in groupby(rows, key=lambda row: row.test.category)
    ]
    natural = list(Category)
    return sorted(groups, key=lambda group: (-SEVERITY.get(group.cell.verdict, 0), natural.index(group.category)))


def _state(unit: Unit, cell: Cell, incident: int | None) -> str:
    """The unit's verdict; where its incident goes by another name (snoozed, suppressed, in grace), it does too."""
    shown = cell.state if incident is None else cell.incidents.get(incident, "")
    return shown if shown in QUIET and unit.verdict in ("fail", "warn") else unit.verdict


def _incidents(units: Iterable[Unit]) -> dict[int, int]:
    """The open incident of each unit that fails."""
    active = Span.objects.filter(ended_at=None, unit__in=[unit.pk for unit in units])
    return dict(active.values_list("unit_id", "incident_id"))


def _why(unit: Unit, bad: int, now: datetime) -> str:
    if unit.verdict == "pass":
        return "resolved as a false positive" if unit.reason == "false_positive" else ""
    others = f"; {bad - 1} more" if bad > 1 else ""
    return reason_of(unit, now=now, with_value=False) + others


def _first(units: QuerySet[Unit], most: int, *order: OrderBy) -> list[Unit]:
    """The first `most` units of each test and copy, in that order."""
    window = Window(RowNumber(), partition_by=[F("test"), F("copy")], order_by=list(order))
    return list(units.annotate(place=window).filter(place__lte=most).order_by("test", "copy", "place"))


def _worst(tests: Sequence[int], now: datetime) -> dict[Key, Unit]:
    units = live_units(now).filter(test__in=tests).exclude(verdict="pass")
    return {(unit.test_id, unit.copy_id): unit for unit in _first(units, 1, SEVERELY.desc(), F("start").desc())}


def _bad(tests: Sequence[int], now: datetime) -> dict[Key, int]:
    units = live_units(now).filter(test__in=tests).exclude(verdict="pass")
    rows = units.values_list("test_id", "copy_id").annotate(n=Count("pk")).order_by()
    return {(test, copy): n for test, copy, n in rows}


def _recent(tests: Sequence[int]) -> dict[Key, list[Unit]]:
    """The newest data ranges that were run, newest first."""
    ran = Unit.objects.filter(test__in=tests, latest_at__isnull=False)
    found: dict[Key, list[Unit]] = defaultdict(list)
    for unit in _first(ran, RUNS, F("start").desc()):
        found[unit.test_id, unit.copy_id].append(unit)
    return found


def _result_lines(tests: Sequence[int]) -> dict[Key, tuple[float, ...]]:
    """Tests of everything at once have one unit: their line is their last runs."""
    window = Window(RowNumber(), partition_by=[F("unit")], order_by=F("read_at").desc())
    results = Result.objects.filter(Q(unit__end=FOREVER), unit__test__in=tests, observed__isnull=False)
    rows = results.annotate(place=window).filter(place__lte=RUNS).order_by("unit", "-place")
    found: dict[Key, list[float]] = defaultdict(list)
    for test, copy, value in rows.values_list("unit__test_id", "unit__copy_id", "observed"):
        if value is not None:
            found[test, copy].append(value)
    return {key: tuple(line) for key, line in found.items()}


def worth_a_rerun(units: QuerySet[Unit], *, now: datetime) -> list[int]:
    """What "run now" means: all that does not pass, tests of everything, and the newest data ranges that are due."""
    newest = now - _NEWEST
    wanted = units.filter(~Q(verdict="pass") | Q(end=FOREVER) | Q(start__gte=newest, latest_at__isnull=False))
    return list(wanted.values_list("pk", flat=True)[:MOST_RERUNS])
