"""Where a new failure goes: the incidents of one dataset and category while spans begin and end.

Thousands of units may fail at once, so what is active is kept by unit and by range: placing a span compares it with the
few ranges near it, however many incidents are open.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from incidents.domain.incident.spans import Incident, Span
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, expanded_by_grain

REOPEN_WITHIN = timedelta(hours=24)
_NARROW_WIDTHS = 8
"""A range of at most so many partitions is looked up by where it starts; the few that are wider are all compared."""


@dataclass(frozen=True)
class JoinIncident:
    """It belongs to this open incident."""

    incident: int


@dataclass(frozen=True)
class ReopenIncident:
    """The same unit came back: this incident goes on."""

    incident: int


@dataclass(frozen=True)
class OpenIncident:
    """It is news: a new incident."""


@dataclass(frozen=True)
class AlreadyActive:
    """The unit is active in this incident already: nothing to do."""

    incident: int


Placement = JoinIncident | ReopenIncident | OpenIncident | AlreadyActive


@dataclass
class _Life:
    opened_at: datetime
    resolved_at: datetime | None
    forced: bool
    active: int = 0


class Placements:
    """The incidents of one dataset and category; others must not be given. A unit is active in one of them at most."""

    def __init__(self, incidents: Iterable[Incident], *, grain: Grain, zone: ZoneInfo, now: datetime) -> None:
        self._grain, self._zone, self._now = grain, zone, now
        self._lives: dict[int, _Life] = {}
        self._active_spans: dict[int, tuple[int, Span]] = {}
        self._held_by: defaultdict[int, set[int]] = defaultdict(set)
        self._ranges = _ActiveRanges(narrow=_NARROW_WIDTHS * grain.width)
        for incident in incidents:
            self.add_incident(incident)

    def add_incident(self, incident: Incident) -> None:
        self._lives[incident.id] = _Life(incident.opened_at, incident.resolved_at, incident.forced)
        for span in incident.spans:
            self._hold(incident.id, span)

    def place(self, span: Span) -> Placement:
        """Where the new `span` goes.

        The earliest open one whose active ranges, grown by one grain, touch the span's; else of those that held the same
        unit, were not forced and were resolved less than 24 hours ago, the one that was resolved last; else a new one.
        """
        if span.unit in self._active_spans:
            return AlreadyActive(self._active_spans[span.unit][0])
        if near := self._ranges.touching(span.data):
            return JoinIncident(min(near, key=self._age))
        if resolved := [number for number in self._held_by.get(span.unit, ()) if self._may_reopen(number)]:
            return ReopenIncident(max(resolved, key=self._resolved))
        return OpenIncident()

    def begin(self, incident: int, span: Span) -> None:
        """The span is active in `incident` now, which is open."""
        self._lives[incident].resolved_at = None
        self._hold(incident, span)

    def end(self, unit: int, *, at: datetime) -> tuple[int, Span] | None:
        """The active span of the unit ends; it, and the incident that it was active in, which is resolved at `at` where it was the last."""
        if unit not in self._active_spans:
            return None
        incident, span = self._active_spans.pop(unit)
        self._ranges.remove(self._grown(span), incident)
        life = self._lives[incident]
        life.active -= 1
        if not life.active:
            life.resolved_at = at
        return incident, span

    def is_over(self, incident: int) -> bool:
        """No span of it is active."""
        return not self._lives[incident].active

    def _hold(self, incident: int, span: Span) -> None:
        self._held_by[span.unit].add(incident)
        if span.is_active and self._lives[incident].resolved_at is None:
            self._active_spans[span.unit] = (incident, span)
            self._lives[incident].active += 1
            self._ranges.add(self._grown(span), incident)

    def _grown(self, span: Span) -> Interval:
        return expanded_by_grain(span.data, self._grain, self._zone)

    def _may_reopen(self, incident: int) -> bool:
        life = self._lives[incident]
        return life.resolved_at is not None and not life.forced and self._now - life.resolved_at < REOPEN_WITHIN

    def _age(self, incident: int) -> tuple[datetime, int]:
        return self._lives[incident].opened_at, incident

    def _resolved(self, incident: int) -> tuple[datetime, datetime, int]:
        life = self._lives[incident]
        assert life.resolved_at is not None
        return life.resolved_at, life.opened_at, incident


class _ActiveRanges:
    """Which incidents have something active over which range. Spans of one partition share a range."""

    def __init__(self, *, narrow: timedelta) -> None:
        self._narrow = narrow
        self._incidents: dict[Interval, Counter[int]] = {}
        self._by_start: list[Interval] = []
        self._wide: dict[Interval, None] = {}

    def add(self, data: Interval, incident: int) -> None:
        counts = self._incidents.get(data)
        if counts is None:
            counts = self._incidents[data] = Counter()
            if data.length <= self._narrow:
                insort(self._by_start, data)
            else:
                self._wide[data] = None
        counts[incident] += 1

    def remove(self, data: Interval, incident: int) -> None:
        counts = self._incidents[data]
        counts[incident] -= 1
        if not counts[incident]:
            del counts[incident]
        if counts:
            return
        del self._incidents[data]
        if data.length <= self._narrow:
            del self._by_start[bisect_left(self._by_start, data)]
        else:
            del self._wide[data]

    def touching(self, data: Interval) -> set[int]:
        return {incident for near in self._near(data) if near.touches(data) for incident in self._incidents[near]}

    def _near(self, data: Interval) -> Iterator[Interval]:
        """The wide ones, and the narrow ones that start early enough to touch and not too early."""
        yield from self._wide
        first = bisect_left(self._by_start, data.start - self._narrow, key=_start)
        yield from self._by_start[first : bisect_right(self._by_start, data.end, key=_start)]


def _start(data: Interval) -> datetime:
    return data.start
