"""A random history through verdicts and spans: a unit's verdict is FAIL iff it is active in exactly one open incident."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.incident.placement import JoinIncident, OpenIncident, Placements, ReopenIncident
from incidents.domain.incident.spans import (
    Incident,
    Span,
    affected_ranges,
    end_span,
    is_over,
    merge_incidents,
)
from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Outcome, Verdict
from lakehub.kernel.partitions import Grain
from quality.domain.verdicts.unit_verdict import UnitFacts, Waiver, judge, observe, waive

START = datetime(2026, 11, 16, tzinfo=UTC)
UNITS = range(5)
HORIZON = 60
ZONE = ZoneInfo("UTC")


def minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


def day(number: int) -> Interval:
    return Interval(START + timedelta(days=number), START + timedelta(days=number + 1))


@dataclass
class World:
    """Units of one test, a day each, and the incidents they make."""

    facts: dict[int, UnitFacts] = field(default_factory=lambda: {unit: UnitFacts() for unit in UNITS})
    incidents: list[Incident] = field(default_factory=list)
    failing: set[int] = field(default_factory=set)

    def see(self, unit: int, outcome: Outcome, at: datetime, sustain: timedelta) -> None:
        self.facts[unit] = observe(self.facts[unit], outcome, read_at=at, sustain=sustain)

    def judge_all(self, now: datetime) -> None:
        for unit in UNITS:
            fails = judge(self.facts[unit], now=now).verdict is Verdict.FAIL
            if fails and unit not in self.failing:
                self._begin(unit, now)
            if not fails and unit in self.failing:
                self._end(unit, now)

    def _begin(self, unit: int, now: datetime) -> None:
        self.failing.add(unit)
        span = Span(unit, 1, day(unit), self.facts[unit].first_fail_at or now)
        where = Placements(self.incidents, grain=Grain.DAY, zone=ZONE, now=now).place(span)
        if isinstance(where, OpenIncident):
            self.incidents.append(Incident(len(self.incidents), 1, "duplicates", now, (span,)))
            return
        assert isinstance(where, JoinIncident | ReopenIncident)
        old = self.incidents[where.incident]
        self.incidents[where.incident] = replace(old, spans=(*old.spans, span), resolved_at=None)

    def _end(self, unit: int, now: datetime) -> None:
        self.failing.remove(unit)
        for number, incident in enumerate(self.incidents):
            spans = end_span(incident.spans, unit=unit, at=now)
            over = incident.is_open and is_over(spans)
            self.incidents[number] = replace(incident, spans=spans, resolved_at=now if over else incident.resolved_at)

    def force(self, number: int, now: datetime) -> None:
        for span in self.incidents[number].active:
            self.facts[span.unit] = waive(self.facts[span.unit], Waiver.FALSE_POSITIVE, at=now)
        self.incidents[number] = replace(self.incidents[number], forced=True)

    def merge_first_two(self, now: datetime) -> None:
        first, second = [incident for incident in self.incidents if incident.is_open][:2]
        self.incidents[first.id], emptied = merge_incidents(first, second)
        self.incidents[second.id] = replace(emptied, resolved_at=now)


events = st.lists(
    st.tuples(
        st.integers(0, HORIZON - 1),
        st.sampled_from(UNITS),
        st.sampled_from([Outcome.PASS, Outcome.FAIL, Outcome.FAIL, Outcome.FAIL, Outcome.ERROR]),
        st.integers(0, 5),
    ),
    min_size=5,
    max_size=40,
)


@given(events, st.sets(st.integers(0, HORIZON - 1), max_size=3), st.sets(st.integers(0, HORIZON - 1), max_size=3))
def test_a_verdict_is_fail_iff_the_unit_is_active_in_exactly_one_open_incident(
    history: list[tuple[int, int, Outcome, int]], forced: set[int], merged: set[int]
) -> None:
    world = World()
    for at in range(HORIZON):
        for _, unit, outcome, sustain in (event for event in history if event[0] == at):
            world.see(unit, outcome, minute(at), timedelta(minutes=sustain))
        opened = [incident for incident in world.incidents if incident.is_open]
        if at in forced and opened:
            world.force(opened[0].id, minute(at))
        if at in merged and len(opened) > 1:
            world.merge_first_two(minute(at))
        world.judge_all(minute(at))
        _assert_invariant(world, minute(at))


def _assert_invariant(world: World, now: datetime) -> None:
    for unit in UNITS:
        active_in = [
            open_incident.id
            for open_incident in world.incidents
            if any(span.unit == unit for span in open_incident.active)
        ]
        fails = judge(world.facts[unit], now=now).verdict is Verdict.FAIL
        assert len(active_in) == (1 if fails else 0)
        assert all(world.incidents[number].is_open for number in active_in)
    for incident in world.incidents:
        assert incident.is_open == bool(incident.active)
        days = {unit for unit in UNITS if any(span.unit == unit for span in incident.active)}
        wrong = affected_ranges(incident.spans, at=now)
        assert {unit for unit in UNITS if any(piece.overlaps(day(unit)) for piece in wrong)} == days
