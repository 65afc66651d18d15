"""Where a failure goes: by examples, against a slow and obvious model, and with how many comparisons."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.incident.placement import (
    REOPEN_WITHIN,
    AlreadyActive,
    JoinIncident,
    OpenIncident,
    Placement,
    Placements,
    ReopenIncident,
)
from incidents.domain.incident.spans import Incident, Span, end_span, is_over, stale_from
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.partitions import Grain, expanded_by_grain, parse_partition_name
from tests.unit.incidents.incident_lives import NOW, day, hours_ago, incident, span

UTC_ZONE = ZoneInfo("UTC")


def placed(new: Span, *incidents: Incident, grain: Grain = Grain.DAY) -> Placement:
    return Placements(incidents, grain=grain, zone=UTC_ZONE, now=NOW).place(new)


def test_a_first_failure_opens_an_incident() -> None:
    assert placed(span(1, day(3))) == OpenIncident()


@pytest.mark.parametrize(
    ("number", "where"),
    [
        (3, JoinIncident(1)),
        (4, JoinIncident(1)),
        (5, JoinIncident(1)),
        (6, OpenIncident()),
        (2, JoinIncident(1)),
        (1, JoinIncident(1)),
        (0, OpenIncident()),
    ],
)
def test_a_failure_joins_where_its_day_is_at_most_one_day_away(number: int, where: Placement) -> None:
    assert placed(span(2, day(number)), incident(1, span(1, day(3)))) == where


def test_a_day_of_25_hours_is_one_day() -> None:
    new_york = ZoneInfo("America/New_York")
    before, after = (parse_partition_name(name, Grain.DAY, new_york) for name in ("2026-10-31", "2026-11-02"))
    placements = Placements([incident(1, span(1, before))], grain=Grain.DAY, zone=new_york, now=NOW)
    assert placements.place(span(2, after)) == JoinIncident(1)


def test_it_joins_the_earliest_of_several() -> None:
    assert placed(
        span(3, day(3)), incident(5, span(1, day(3)), opened=2), incident(9, span(2, day(4)), opened=4)
    ) == JoinIncident(9)


def test_a_healed_day_attracts_nothing() -> None:
    healed = incident(1, span(1, day(3), ended=1), span(2, day(20)))
    assert placed(span(3, day(3)), healed) == OpenIncident()


def test_a_unit_that_is_active_already_is_known() -> None:
    assert placed(
        span(2, day(3)), incident(1, span(1, day(3)), opened=9), incident(4, span(2, day(3)))
    ) == AlreadyActive(4)


def test_a_unit_that_comes_back_within_a_day_reopens_its_incident() -> None:
    ended = span(1, day(3), began=40, ended=23)
    assert placed(span(1, day(3)), incident(1, ended, resolved=23.9)) == ReopenIncident(1)
    assert placed(span(1, day(3)), incident(1, ended, resolved=24)) == OpenIncident()
    assert placed(span(2, day(3)), incident(1, ended, resolved=23)) == OpenIncident()
    assert placed(span(1, day(3)), incident(1, ended, resolved=23, forced=True)) == OpenIncident()


def test_an_open_incident_goes_before_one_that_could_reopen() -> None:
    closed = incident(1, span(1, day(3), ended=2), opened=9, resolved=2)
    assert placed(span(1, day(3)), closed, incident(2, span(5, day(4)))) == JoinIncident(2)


def test_of_several_the_one_that_was_resolved_last_reopens() -> None:
    longer, shorter = (
        incident(number, span(1, day(3), ended=over), opened=age, resolved=over)
        for number, age, over in ((1, 9, 2), (2, 5, 3))
    )
    assert placed(span(1, day(3)), longer, shorter) == ReopenIncident(1)


def test_a_whole_table_touches_everything_of_its_dataset() -> None:
    assert placed(span(2, EVERYTHING), incident(1, span(1, EVERYTHING)), grain=Grain.NONE) == JoinIncident(1)


def test_stale_data_reaches_one_grain_back() -> None:
    stale = incident(1, span(1, stale_from(day(5).start)))
    assert placed(span(2, day(3)), stale) == JoinIncident(1)
    assert placed(span(2, day(2)), stale) == OpenIncident()


# Against a model that compares everything


def place_slowly(span: Span, incidents: Iterable[Incident]) -> Placement:
    by_age = sorted(incidents, key=lambda each: (each.opened_at, each.id))
    opened = [each for each in by_age if each.is_open]
    for each in opened:
        if any(other.unit == span.unit for other in each.active):
            return AlreadyActive(each.id)
    for each in opened:
        if any(expanded_by_grain(other.data, Grain.DAY, UTC_ZONE).touches(span.data) for other in each.active):
            return JoinIncident(each.id)
    returning = [
        (each.resolved_at, each.opened_at, each.id)
        for each in by_age
        if each.resolved_at and not each.forced and NOW - each.resolved_at < REOPEN_WITHIN and each.holds(span.unit)
    ]
    return ReopenIncident(max(returning)[-1]) if returning else OpenIncident()


ranges = st.one_of(
    st.integers(0, 12).map(day),
    st.tuples(st.integers(0, 12), st.integers(1, 20)).map(lambda pair: day(*pair)),
    st.integers(0, 12).map(lambda number: stale_from(day(number).start)),
    st.just(EVERYTHING),
)
moves = st.lists(st.tuples(st.integers(0, 5), ranges, st.integers(0, 30), st.booleans()), max_size=25)


@given(moves)
def test_placements_agree_with_the_model(history: list[tuple[int, Interval, int, bool]]) -> None:
    """Units fail over some range, and pass, each hour; `ended` lies a day and more back too."""
    fast = Placements([], grain=Grain.DAY, zone=UTC_ZONE, now=NOW)
    slow: dict[int, Incident] = {}
    for number, (unit, data, ended, fails) in enumerate(history):
        if not fails:
            fast.end(unit, at=hours_ago(ended))
            for each in slow.values():
                if any(active.unit == unit for active in each.active):
                    left = end_span(each.spans, unit=unit, at=NOW)
                    resolved_at = hours_ago(ended) if is_over(left) else None
                    slow[each.id] = replace(each, spans=left, resolved_at=resolved_at)
            continue
        new = span(unit, data, began=100)
        where = place_slowly(new, slow.values())
        assert fast.place(new) == where
        if isinstance(where, AlreadyActive):
            continue
        key = number if isinstance(where, OpenIncident) else where.incident
        if isinstance(where, OpenIncident):
            slow[key] = incident(key, opened=200 - number)
            fast.add_incident(slow[key])
        fast.begin(key, new)
        slow[key] = replace(slow[key], spans=(*slow[key].spans, new), resolved_at=None)
        assert {each.id for each in slow.values() if is_over(each.spans)} == {key for key in slow if fast.is_over(key)}


@pytest.mark.parametrize(("apart", "incidents"), [(1, 1), (0, 1), (4, 2000)])
def test_placing_a_span_compares_it_with_what_is_near(
    apart: int, incidents: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two thousand days side by side, one day two thousand times, two thousand days apart: 3,000 took 57 s."""
    compared, touches = [0], Interval.touches

    def counted(self: Interval, other: Interval) -> bool:
        compared[0] += 1
        return touches(self, other)

    monkeypatch.setattr(Interval, "touches", counted)
    placements, opened = Placements([], grain=Grain.DAY, zone=UTC_ZONE, now=NOW), 0
    for unit in range(2000):
        new = span(unit, day(unit * apart))
        where = placements.place(new)
        if isinstance(where, OpenIncident):
            opened += 1
            placements.add_incident(incident(opened))
        placements.begin(where.incident if isinstance(where, JoinIncident) else opened, new)
    assert opened == incidents
    assert compared[0] < 25 * 2000
