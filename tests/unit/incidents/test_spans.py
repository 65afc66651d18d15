"""Where a failure goes, and what an incident affects and lived, against sets of days and minutes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.incident.spans import (
    AlreadyActive,
    CannotCombine,
    Incident,
    JoinIncident,
    OpenIncident,
    Placement,
    ReopenIncident,
    Span,
    affected_ranges,
    end_span,
    failing_intervals,
    is_over,
    merge_incidents,
    place_span,
    split_incident,
    stale_from,
    with_boundary,
)
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.partitions import Grain, parse_partition_name

UTC_ZONE = ZoneInfo("UTC")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def day(number: int, days: int = 1) -> Interval:
    start = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(days=number)
    return Interval(start, start + timedelta(days=days))


def hours_ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


def span(unit: int, data: Interval, began: float = 5, ended: float | None = None, copy: int = 1) -> Span:
    return Span(unit, copy, data, hours_ago(began), None if ended is None else hours_ago(ended))


def incident(
    number: int, *spans: Span, opened: float = 5, resolved: float | None = None, forced: bool = False
) -> Incident:
    return Incident(
        number, 7, "duplicates", hours_ago(opened), spans, None if resolved is None else hours_ago(resolved), forced
    )


def placed(new: Span, *incidents: Incident, grain: Grain = Grain.DAY) -> Placement:
    return place_span(new, incidents, grain=grain, zone=UTC_ZONE, now=NOW)


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
    assert place_span(
        span(2, after), [incident(1, span(1, before))], grain=Grain.DAY, zone=new_york, now=NOW
    ) == JoinIncident(1)


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


def test_the_latest_of_several_reopens() -> None:
    older, newer = (
        incident(number, span(1, day(3), ended=3), opened=age, resolved=3) for number, age in ((1, 9), (2, 5))
    )
    assert placed(span(1, day(3)), older, newer) == ReopenIncident(2)


def test_a_whole_table_touches_everything_of_its_dataset() -> None:
    assert placed(span(2, EVERYTHING), incident(1, span(1, EVERYTHING)), grain=Grain.NONE) == JoinIncident(1)


def test_stale_data_reaches_one_grain_back() -> None:
    stale = incident(1, span(1, stale_from(day(5).start)))
    assert placed(span(2, day(3)), stale) == JoinIncident(1)
    assert placed(span(2, day(2)), stale) == OpenIncident()


def test_the_boundary_of_freshness_moves_until_the_span_ends() -> None:
    stale = span(1, stale_from(day(5).start))
    assert with_boundary(stale, day(6).start).data == stale_from(day(6).start)
    (frozen,) = end_span([stale], unit=1, at=NOW)
    assert with_boundary(frozen, day(6).start) == frozen


def test_an_incident_is_over_when_its_last_span_ends() -> None:
    spans = end_span([span(1, day(3)), span(2, day(4))], unit=1, at=NOW)
    assert not is_over(spans)
    assert is_over(end_span(spans, unit=2, at=NOW))


def test_a_span_does_not_end_before_it_began() -> None:
    (ended,) = end_span([span(1, day(3), began=1)], unit=1, at=hours_ago(2))
    assert ended.life(now=NOW) is None


spans = st.lists(
    st.builds(
        lambda unit, number, began, lasted: span(
            unit, day(number), began, None if lasted is None else began - lasted, unit % 2
        ),
        st.integers(1, 6),
        st.integers(0, 9),
        st.integers(0, 30),
        st.none() | st.integers(0, 20),
    ),
    max_size=6,
)


@given(spans, st.integers(-5, 35))
def test_affected_is_the_union_of_the_days_that_were_failing_then(some: list[Span], ago: int) -> None:
    at = hours_ago(ago)
    for copy in (None, 0, 1):
        alive = [
            lived_span
            for lived_span in some
            if lived_span.began_at <= at
            and (lived_span.ended_at is None or at < lived_span.ended_at)
            and copy in (None, lived_span.copy)
        ]
        days = {
            number for number in range(10) if any(alive_span.data.contains(day(number).start) for alive_span in alive)
        }
        ranges = affected_ranges(some, at=at, copy=copy)
        assert {number for number in range(10) if any(piece.contains(day(number).start) for piece in ranges)} == days


@given(spans)
def test_a_life_is_the_hours_in_which_some_span_lived(some: list[Span]) -> None:
    intervals = failing_intervals(some, now=NOW)
    for ago in range(-5, 40):
        at = hours_ago(ago)
        lived = at < NOW and any(
            lived_span.began_at <= at and (lived_span.ended_at is None or at < lived_span.ended_at)
            for lived_span in some
        )
        assert any(piece.contains(at) for piece in intervals) == lived


@given(spans, spans, st.sets(st.integers(1, 6)))
def test_merge_and_split_only_move_spans(some: list[Span], others: list[Span], units: set[int]) -> None:
    into, emptied = merge_incidents(incident(1, *some), incident(2, *others))
    assert (into.spans, emptied.spans) == ((*some, *others), ())
    try:
        stay, go = split_incident(into, units)
    except CannotCombine:
        return
    assert sorted(stay + go, key=hash) == sorted(into.spans, key=hash)


def test_what_cannot_be_combined_is_refused() -> None:
    other_dataset = Incident(2, 8, "duplicates", NOW)
    with pytest.raises(
        CannotCombine, match="#1 and #2 are not of the same dataset and category: duplicates of dataset 7"
    ):
        merge_incidents(incident(1), other_dataset)
    with pytest.raises(CannotCombine, match="with itself"):
        merge_incidents(incident(1), incident(1))
    with pytest.raises(CannotCombine, match="0 stay, 1 go"):
        split_incident(incident(1, span(1, day(3))), {1})
