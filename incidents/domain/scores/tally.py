"""How good the alarms were over a window: what was real, what was false, what was missed, by length of time.

TP: lives of detected incidents that are no false positives. FP: lives of false positives, where no TP lived. FN: what
users reported, and the producer acknowledged, while no detected incident of the dataset over that range lived. All are
unions of intervals clipped to the window, one tally a (dataset, category), so that windows side by side add up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from lakehub.kernel.interval import Interval, subtract

DatasetCategory = tuple[int, str]
"""(dataset, category)"""

Pair = tuple[datetime, datetime]
"""`[start, end)`, plain: there are a hundred thousand of them, and a pair of instants costs the garbage collector nothing."""
Pieces = tuple[Pair, ...]


LivedRow = tuple[int, int, str, int, bool, datetime, datetime | None]
"""The fields of `LivedSpan`, plain, for the same reason."""


class LivedSpan(NamedTuple):
    """What scores need of a span of a detected incident: one unit of a test failing. `ended_at` None: it still does."""

    incident: int
    dataset: int
    category: str
    test: int
    false_positive: bool
    began_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True)
class ReportedFailure:
    """A user's report that the producer acknowledged; `copy` None: all copies. Not fixed: it lives until now."""

    id: int
    dataset: int
    category: str
    data: Interval
    occurred_at: datetime
    fixed_at: datetime | None = None
    copy: int | None = None

    def is_alive(self, at: datetime) -> bool:
        return self.occurred_at <= at and (self.fixed_at is None or at < self.fixed_at)

    def overlaps(self, began_at: datetime, ended_at: datetime | None) -> bool:
        """In life, whatever they are about."""
        begins_before = self.fixed_at is None or began_at < self.fixed_at
        return begins_before and (ended_at is None or ended_at > self.occurred_at)


@dataclass(frozen=True)
class MissedFailure:
    """The time of a report during which no test of the dataset, of any category, saw anything over its range."""

    report: int
    dataset: int
    category: str
    pieces: tuple[Interval, ...]
    unsettled: bool = False
    """It is not fixed."""


MissedPieces = tuple[MissedFailure, Pieces]
"""What was missed, and what of its time counts in a group."""


@dataclass(frozen=True)
class MonitoringPeriod:
    """When a test was there to see anything; `until` None: it still is."""

    __test__ = False  # not a test case of pytest's

    test: int
    since: datetime
    until: datetime | None = None

    def within(self, window: Interval) -> Interval | None:
        start, end = max(self.since, window.start), min(self.until or window.end, window.end)
        return Interval(start, end) if start < end else None


@dataclass(frozen=True)
class Tally:
    """Disjoint, sorted pieces of time of one group within the window, and the incidents behind each."""

    tp: Pieces = ()
    fp: Pieces = ()
    fn: Pieces = ()
    real: frozenset[int] = frozenset()
    false: frozenset[int] = frozenset()
    missed: frozenset[int] = frozenset()
    unsettled: frozenset[int] = frozenset()
    """Of those the ones that are open: their time counts to now and may still change sides."""

    @cached_property
    def durations(self) -> Durations:
        return Durations(total_length(self.tp), total_length(self.fp), total_length(self.fn))


@dataclass(frozen=True)
class Durations:
    """What a window adds up to; windows side by side add up too. Precision and recall of nothing are None."""

    tp: timedelta = timedelta()
    fp: timedelta = timedelta()
    fn: timedelta = timedelta()

    def __add__(self, other: Durations) -> Durations:
        return Durations(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn)

    @property
    def precision(self) -> float | None:
        return ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        return ratio(self.tp, self.tp + self.fn)

    @property
    def whole(self) -> timedelta:
        return self.tp + self.fp + self.fn


@dataclass(frozen=True)
class Window:
    """The time that is looked at, and by dataset the periods in it that are left out: grace, backtests."""

    whole: Interval
    excluded: Mapping[int, Iterable[Interval]]

    def pieces(self, dataset: int, start: datetime, end: datetime | None) -> list[Pair]:
        """What of `[start, end)` counts; `end` None: it goes on."""
        whole = self.whole
        first = start if start > whole.start else whole.start
        last = whole.end if end is None or end > whole.end else end
        if first >= last:
            return []
        holes = self.excluded.get(dataset)
        if holes is None:
            return [(first, last)]
        return [(piece.start, piece.end) for piece in subtract([Interval(first, last)], holes)]


def missed_failure(
    report: ReportedFailure, lived: Iterable[LivedRow], ranges: Iterable[tuple[int, Interval]], window: Window
) -> MissedFailure:
    """`lived` and `ranges`, the (incident, data) of their spans, dead or alive, are those of the report's dataset."""
    covering = {incident for incident, data in ranges if data.overlaps(report.data)}
    detected = [
        Interval(*pair)
        for incident, dataset, _, _, false_positive, began_at, ended_at in lived
        if incident in covering and not false_positive
        for pair in window.pieces(dataset, began_at, ended_at)
    ]
    life = window.pieces(report.dataset, report.occurred_at, report.fixed_at)
    pieces = subtract((Interval(*pair) for pair in life), detected)
    return MissedFailure(report.id, report.dataset, report.category, pieces, report.fixed_at is None)


def tally_by_category(
    lived: Iterable[LivedRow], reports: Iterable[MissedFailure], window: Window
) -> dict[DatasetCategory, Tally]:
    """TP, FP and FN of each (dataset, category)."""
    rows: defaultdict[DatasetCategory, list[LivedRow]] = defaultdict(list)
    missed_pieces: defaultdict[DatasetCategory, list[MissedPieces]] = defaultdict(list)
    for row in lived:
        rows[row[1], row[2]].append(row)
    for report in reports:
        missed_pieces[report.dataset, report.category].append((report, _within(report, window.whole)))
    return {
        key: _tally(rows.get(key, ()), missed_pieces.get(key, ()), window)
        for key in dict.fromkeys((*rows, *missed_pieces))
    }


def tally_by_test(
    lived: Iterable[LivedRow],
    reports: Iterable[MissedFailure],
    tests: Mapping[DatasetCategory, Iterable[MonitoringPeriod]],
    window: Window,
) -> dict[int, Tally]:
    """The same of each test: the lives of its own units. What was missed was missed by each test of its category that was
    there, so that recall is the least that a test can be blamed with; tests do not add up to their category."""
    rows: defaultdict[int, list[LivedRow]] = defaultdict(list)
    missed_pieces: defaultdict[int, list[MissedPieces]] = defaultdict(list)
    for row in lived:
        rows[row[3]].append(row)
    for report in reports:
        for test in tests.get((report.dataset, report.category), ()):
            missed_pieces[test.test].append((report, _within(report, test.within(window.whole))))
    return {
        test: _tally(rows.get(test, ()), missed_pieces.get(test, ()), window)
        for test in dict.fromkeys((*rows, *missed_pieces))
    }


def _within(report: MissedFailure, time: Interval | None) -> Pieces:
    pieces = (piece.clip(time) for piece in report.pieces) if time else ()
    return tuple((piece.start, piece.end) for piece in pieces if piece)


def _tally(rows: Iterable[LivedRow], missed_pieces: Iterable[MissedPieces], window: Window) -> Tally:
    """Of one group at a time, so that little is alive at once: with all of them, half of the time went to the collector."""
    sides: tuple[list[Pair], list[Pair]] = ([], [])
    behind: tuple[set[int], set[int]] = (set(), set())
    unsettled: set[int] = set()
    for incident, dataset, _, _, false_positive, began_at, ended_at in rows:
        if pieces := window.pieces(dataset, began_at, ended_at):
            sides[false_positive].extend(pieces)
            behind[false_positive].add(incident)
            if ended_at is None:
                unsettled.add(incident)
    counted = [(report, pieces) for report, pieces in missed_pieces if pieces]
    unsettled.update(report.report for report, _ in counted if report.unsettled)
    tp = union_of_pairs(sides[False])
    fp = _subtract_pairs(union_of_pairs(sides[True]), tp) if sides[True] else ()
    fn = union_of_pairs([pair for _, pieces in counted for pair in pieces])
    missed = frozenset(report.report for report, _ in counted)
    return Tally(tp, fp, fn, frozenset(behind[False]), frozenset(behind[True]), missed, frozenset(unsettled))


def union_of_pairs(pairs: list[Pair]) -> Pieces:
    """The union, as `lakehub.kernel.interval.union` of plain pairs. Sorts them."""
    if len(pairs) < 2:
        return tuple(pairs)
    merged: list[Pair] = []
    pairs.sort()
    start, end = pairs[0]
    for first, last in pairs:
        if first > end:
            merged.append((start, end))
            start, end = first, last
        elif last > end:
            end = last
    merged.append((start, end))
    return tuple(merged)


def _subtract_pairs(pieces: Pieces, holes: Pieces) -> Pieces:
    """As `lakehub.kernel.interval.subtract` of plain pairs; both are disjoint and sorted, and so is what is left."""
    left: list[Pair] = []
    for start, end in pieces:
        at = max(0, bisect_left(holes, (start, start)) - 1)
        while at < len(holes) and holes[at][0] < end:
            first, last = holes[at]
            if start < first:
                left.append((start, first))
            start = max(start, last)
            at += 1
        if start < end:
            left.append((start, end))
    return tuple(left)


def total_length(pieces: Iterable[Pair]) -> timedelta:
    """Of disjoint pieces."""
    return sum((end - start for start, end in pieces), timedelta())


def ratio(part: timedelta, whole: timedelta) -> float | None:
    return part / whole if whole else None
