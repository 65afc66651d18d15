"""What must be told of the tables of a scenario, and what the gate must say: the rules once more, slow and obvious."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple

from tests.contracts.planted.calendar import Period, period_at
from tests.contracts.planted.layouts import StoredRow
from tests.contracts.planted.scenario import Phase, Place, Scenario, Signal, TablePlan

COMPLETE = Fraction(999, 1000)
CATEGORIES = {
    "volume": "completeness",
    "completeness": "completeness",
    "sample": "completeness",
    "duplicates": "duplicates",
    "row_count": "consistency",
    "bloom": "consistency",
    "difference": "consistency",
}
"""By the key of a test, without the data center behind it."""


class FailingUnit(NamedTuple):
    place: Place
    key: str
    start: datetime | None


@dataclass(frozen=True)
class Expectation:
    units: frozenset[FailingUnit]
    signals: frozenset[Signal]
    gate: Mapping[tuple[Place, Period], str]
    """pass, fail or unknown."""
    fronts: Mapping[Place, datetime]
    """From where on the copies are stale whose freshness fails."""


@dataclass
class Model:
    """Remembers from phase to phase which periods are tested, and what failed: that there is nothing to say ends no failure."""

    scenario: Scenario
    tested: dict[Place, set[Period]] = field(default_factory=dict)
    since: dict[Place, datetime] = field(default_factory=dict)
    failed: set[FailingUnit] = field(default_factory=set)

    def expect(self, phase: Phase) -> Expectation:
        self.phase = phase
        for table in self.scenario.tables:
            for place in table.places:
                self._extend_tested(table, place)
        units, signals, gate, fronts = set(), set(), {}, {}
        for table in self.scenario.tables:
            for place in table.places:
                front = self._front(table, place)
                is_late = front is not None and self._is_late(table, front)
                if front is not None and is_late:
                    fronts[place] = front
                    units.add(FailingUnit(place, "freshness", None))
                    signals.add(Signal(place, "freshness", front))
                for period in self._calendar(table):
                    outcomes = self._outcomes(table, place, period)
                    for key, outcome in outcomes.items():
                        if outcome == "unknown" and FailingUnit(place, key, period.start) in self.failed:
                            outcomes[key] = "fail"
                    failing = [key for key, outcome in outcomes.items() if outcome == "fail"]
                    units |= {FailingUnit(place, key, period.start) for key in failing}
                    signals |= {Signal(place, CATEGORIES[key.partition("@")[0]], period.start) for key in failing}
                    is_stale = front is not None and is_late and period.end > front
                    gate[place, period] = self._verdict(table, place, period, outcomes, is_stale, front is not None)
                signals |= set(self._misplaced(table, place))
                units |= {
                    FailingUnit(place, f"finding:{'partition_ahead' if start else 'partition_unreadable'}", start)
                    for _, _, start in self._misplaced(table, place)
                }
        self.failed = units
        return Expectation(frozenset(units), frozenset(signals), gate, fronts)

    # Which periods are tested

    def _calendar(self, table: TablePlan) -> list[Period]:
        return [period for period in self.scenario.calendars[table.name] if period.start <= self.phase.settled_at]

    def _extend_tested(self, table: TablePlan, place: Place) -> None:
        """The periods that hold rows here, upstream or in another data center, those between them, and all since onboarding."""
        began = self.scenario.phases[0].now
        populated = sorted(self._populated(table, place))
        if place not in self.tested:
            self.tested[place] = set()
            self.since[place] = populated[0].start if populated else period_at(table.grain, table.zone, began).start
        tested, since = self.tested[place], self.since[place]
        for period in populated:
            if period not in tested and period.end > since:
                earlier = [known.end for known in tested if known.start < period.start]
                awaited_from = max(earlier, default=since)
                tested |= {hole for hole in self._calendar(table) if awaited_from <= hole.start <= period.start}
        onboarded = period_at(table.grain, table.zone, began).start
        tested |= {period for period in self._calendar(table) if period.start >= max(since, onboarded)}

    def _populated(self, table: TablePlan, place: Place) -> set[Period]:
        """None of those that have not begun."""
        kin = [*table.places, *(Place(table.upstream.name, place.center) for _ in "1" if table.upstream)]
        starts = {start for near in kin for start, rows in self._by_start(near).items() if rows}
        return {period for period in self._calendar(table) if any(period.holds(start) for start in starts)}

    # What is in a table

    def _rows(self, place: Place) -> Sequence[StoredRow]:
        return () if place in self.phase.gone else self.phase.tables[place]

    def _plan(self, place: Place) -> TablePlan:
        return next(table for table in self.scenario.tables if table.name == place.dataset)

    def _in(self, place: Place, period: Period) -> list[StoredRow]:
        """The rows of a period, which this table may cut finer."""
        table = self._plan(place)
        label = table.layout.label
        labels = {label(part) for part in self.scenario.calendars[table.name] if period.holds(part.start)}
        return [row for row in self._rows(place) if row.period is not None and label(row.period) in labels]

    def _by_start(self, place: Place) -> Counter[datetime]:
        """The number of rows by the start of the period that the table names; of two with one name it is the first."""
        table, first = self._plan(place), dict[object, datetime]()
        for period in self.scenario.calendars[table.name]:
            first.setdefault(table.layout.label(period), period.start)
        return Counter(
            first.get(table.layout.label(row.period), row.period.start)
            for row in self._rows(place)
            if row.period is not None and row.period.start <= self.phase.settled_at
        )

    # The tests of a period

    def _outcomes(self, table: TablePlan, place: Place, period: Period) -> dict[str, str]:
        """fail, pass or, where there is nothing to say, unknown; empty where none is due."""
        if period not in self.tested[place] or period.end + table.promise.freshness > self.phase.settled_at:
            return {}
        outcomes = dict(self._outcomes_compared(table, place, period))
        if place in self.phase.gone:
            return dict.fromkeys(["volume", "duplicates", *outcomes], "unknown")
        own = self._in(place, period)
        outcomes["volume"] = "pass" if own else "fail"
        different = _part(len({row.number for row in own}), len(own))
        allowed = table.promise.duplicates
        outcomes["duplicates"] = _said(different, lambda share: share == 1 or 1 - share < allowed)
        return outcomes

    def _outcomes_compared(self, table: TablePlan, place: Place, period: Period) -> Iterator[tuple[str, str]]:
        own, promise = self._in(place, period), table.promise
        keys = Counter(row.number for row in own)
        if table.upstream is not None:
            there = self._in(Place(table.upstream.name, place.center), period)
            share = _part(len(own), len(there))
            yield "completeness", _said(share, lambda it: promise.completeness < it < 2 - promise.completeness)
            present = _part(len({row.number for row in there} & set(keys)), len({row.number for row in there}))
            yield "sample", _said(present, lambda it: it > promise.completeness)
        for other in table.places:
            if other != place:
                theirs = self._in(other, period)
                readable = other not in self.phase.gone
                most = max(len(own), len(theirs))
                rows = _part(len(own), most) if readable else None
                yield f"row_count@{other.center}", _said(rows, lambda it: it > promise.consistency)
                numbers = {row.number for row in theirs}
                # Of nothing there, nothing is missing here.
                nothing_missing = Fraction(1) if own and not theirs and readable else None
                present = _part(len(numbers & set(keys)), len(numbers)) if numbers else nothing_missing
                yield f"bloom@{other.center}", _said(present, lambda it: it > promise.consistency)
                differing = _part(min(most, _differing(own, theirs)), most) if readable else None
                allowed = 1 - promise.consistency
                yield f"difference@{other.center}", _said(differing, lambda it, allowed=allowed: it < allowed)

    # Freshness

    def _front(self, table: TablePlan, place: Place) -> datetime | None:
        """c: the end of the latest period, of those that ended, that has what it should have. None: that is not known."""
        if place in self.phase.gone:
            return None
        now = period_at(table.grain, table.zone, self.phase.settled_at).start
        ended = [period for period in self.scenario.calendars[table.name] if period.end <= now]
        if table.upstream is not None:
            return self._front_by_upstream(table.upstream, place, ended)
        if table.by_event_time:
            times = [row.happened_at or row.at for row in self._rows(place)]
            latest = max((at for at in times if at < now), default=None)
            return None if latest is None else period_at(table.grain, table.zone, latest).end
        rows = self._by_start(place)
        return max((period.end for period in ended if rows[period.start]), default=None)

    def _front_by_upstream(self, upstream: TablePlan, place: Place, ended: Collection[Period]) -> datetime | None:
        own, there = self._by_start(place), Counter[datetime]()
        since, near = self.since[place], Place(upstream.name, place.center)
        ended = [period for period in ended if period.start >= since]
        for start, rows in self._by_start(near).items():
            for period in ended:
                if period.holds(start):
                    there[period.start] += rows
        if not any(start >= since for start, rows in self._by_start(near).items() if rows):
            return None
        whole = [period.end for period in ended if own[period.start] >= COMPLETE * there[period.start]]
        return max(whole, default=since)

    def _is_late(self, table: TablePlan, front: datetime) -> bool:
        return self.phase.settled_at - period_at(table.grain, table.zone, front).end >= table.promise.freshness

    # Findings

    def _misplaced(self, table: TablePlan, place: Place) -> Iterator[Signal]:
        next_end = period_at(table.grain, table.zone, self.phase.settled_at).end
        rows = self._rows(place)
        if any(row.period is None for row in rows):
            yield Signal(place, "ingestion", None)
        ahead = {row.period.start for row in rows if row.period is not None and row.period.start > next_end}
        yield from (Signal(place, "ingestion", start) for start in sorted(ahead))

    # The gate

    def _verdict(
        self,
        table: TablePlan,
        place: Place,
        period: Period,
        outcomes: Mapping[str, str],
        is_stale: bool,
        has_front: bool,
    ) -> str:
        if is_stale or "fail" in outcomes.values():
            return "fail"
        is_known = bool(outcomes) and has_front and period.end > self.since[place]
        return "pass" if is_known and "unknown" not in outcomes.values() else "unknown"


def held_back(
    expectation: Expectation,
    scenario: Scenario,
    category: str,
    dataset: str,
    copies: Collection[Place],
    since: datetime,
) -> bool:
    """Whether freshness explains an incident whose failing copies and earliest range are these: all of it lies after a front."""
    table = next(table for table in scenario.tables if table.name == dataset)
    involved = set(copies)
    if category == "consistency":
        involved |= set(table.places)
    if category == "completeness" and table.upstream is not None:
        involved |= {Place(table.upstream.name, copy.center) for copy in copies}
    return category != "freshness" and any(
        front <= since for place, front in expectation.fronts.items() if place in involved
    )


def _part(some: int, every: int) -> Fraction | None:
    return Fraction(some, every) if every else None


def _said(share: Fraction | None, is_good: object) -> str:
    if share is None:
        return "unknown"
    assert callable(is_good)
    return "pass" if is_good(share) else "fail"


def _differing(own: Sequence[StoredRow], theirs: Sequence[StoredRow]) -> int:
    """Records that are missing here, have other values here, or are here more often."""
    mine, other = _by_number(own), _by_number(theirs)
    differing = 0
    for number in mine.keys() | other.keys():
        here, there = mine.get(number, []), other.get(number, [])
        if not there:
            continue
        differing += len(there) if not here else max(len(here) - len(there), 0) + (here[0] != there[0])
    return differing


def _by_number(rows: Sequence[StoredRow]) -> dict[int, list[StoredRow]]:
    by_number: dict[int, list[StoredRow]] = {}
    for row in rows:
        by_number.setdefault(row.number, []).append(row)
    return by_number
