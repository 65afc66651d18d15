"""Half-open intervals of aware UTC time, `[start, end)`, and the arithmetic of their unions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter

BEGINNING = datetime(1900, 1, 1, tzinfo=UTC)
"""Stands for minus infinity; late enough that every time zone and database can hold it."""
FOREVER = datetime(9999, 1, 1, tzinfo=UTC)
"""Stands for plus infinity."""


@dataclass(frozen=True, order=True)
class Interval:
    """`[start, end)`; both aware. An empty or reversed range is refused."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        start, end = self.start, self.end
        if start.tzinfo is None or end.tzinfo is None:
            name, naive = ("start", start) if start.tzinfo is None else ("end", end)
            raise ValueError(
                f"The {name} of a range has no time zone: {naive.isoformat()}. Add an offset, as in {naive.isoformat()}Z."
            )
        if end <= start:
            raise ValueError(
                f"The range ends at {self.end.isoformat()}, which is not after its start {self.start.isoformat()}. "
                "Ranges are half-open, [start, end): give an end that is later."
            )

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    @property
    def is_everything(self) -> bool:
        return self.start <= BEGINNING and self.end >= FOREVER

    def contains(self, instant: datetime) -> bool:
        return self.start <= instant < self.end

    def covers(self, other: Interval) -> bool:
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Interval) -> bool:
        """They share at least one instant."""
        return self.start < other.end and other.start < self.end

    def touches(self, other: Interval) -> bool:
        """They share an instant or lie side by side."""
        return self.start <= other.end and other.start <= self.end

    def clip(self, window: Interval) -> Interval | None:
        start, end = max(self.start, window.start), min(self.end, window.end)
        return Interval(start, end) if start < end else None

    def expanded(self, by: timedelta) -> Interval:
        start = self.start if self.start <= BEGINNING + by else self.start - by
        end = self.end if self.end >= FOREVER - by else self.end + by
        return Interval(start, end)


EVERYTHING = Interval(BEGINNING, FOREVER)


def later(instant: datetime, by: timedelta) -> datetime:
    """`instant + by`, and FOREVER from there on: the end of time can be moved no further."""
    return FOREVER if by >= FOREVER - instant else instant + by


def earlier(instant: datetime, by: timedelta) -> datetime:
    """`instant - by`, and BEGINNING from there on."""
    return BEGINNING if by >= instant - BEGINNING else instant - by


_ENDS = attrgetter("start", "end")


def union(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """The same instants as disjoint, sorted intervals with a gap between each two."""
    in_order = sorted(intervals, key=_ENDS)
    if len(in_order) < 2:
        return tuple(in_order)
    merged: list[Interval] = []
    piece, end = in_order[0], in_order[0].end
    for interval in in_order[1:]:
        if interval.start <= end:
            end = max(end, interval.end)
        else:
            merged.append(piece if piece.end == end else Interval(piece.start, end))
            piece, end = interval, interval.end
    merged.append(piece if piece.end == end else Interval(piece.start, end))
    return tuple(merged)


def subtract(intervals: Iterable[Interval], holes: Iterable[Interval]) -> tuple[Interval, ...]:
    """The instants of `intervals` that lie in none of `holes`."""
    cut = union(holes)
    return tuple(piece for interval in union(intervals) for piece in _subtract_holes(interval, cut))


def _subtract_holes(interval: Interval, holes: tuple[Interval, ...]) -> Iterator[Interval]:
    at = interval.start
    for hole in holes:
        if hole.end <= at or hole.start >= interval.end:
            continue
        if hole.start > at:
            yield Interval(at, hole.start)
        at = max(at, hole.end)
    if at < interval.end:
        yield Interval(at, interval.end)


def clip_to(intervals: Iterable[Interval], window: Interval) -> tuple[Interval, ...]:
    clipped = (interval.clip(window) for interval in intervals)
    return union(piece for piece in clipped if piece is not None)


def total_length(intervals: Iterable[Interval]) -> timedelta:
    """The length of the union: an instant in several intervals counts once."""
    return sum((interval.length for interval in union(intervals)), timedelta())
