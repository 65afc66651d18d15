"""Unions of intervals against sets of minutes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval, clip_to, subtract, total_length, union

START = datetime(2026, 11, 1, tzinfo=UTC)


def between(start: int, end: int) -> Interval:
    return Interval(START + timedelta(minutes=start), START + timedelta(minutes=end))


def grid(*intervals: Interval) -> set[int]:
    return {
        minute
        for minute in range(60)
        if any(interval.contains(START + timedelta(minutes=minute)) for interval in intervals)
    }


intervals = st.builds(lambda start, length: between(start, start + length), st.integers(0, 40), st.integers(1, 15))
lists = st.lists(intervals, max_size=6)


@given(lists, lists)
def test_a_union_and_a_difference_hold_the_same_instants_as_sets_do(
    some: list[Interval], others: list[Interval]
) -> None:
    assert grid(*union(some)) == grid(*some)
    assert grid(*subtract(some, others)) == grid(*some) - grid(*others)


@given(lists, lists)
def test_pieces_are_sorted_disjoint_and_apart(some: list[Interval], others: list[Interval]) -> None:
    for pieces in (union(some), subtract(some, others)):
        assert all(earlier.end < later.start for earlier, later in pairwise(pieces))


@given(lists, intervals)
def test_a_total_counts_each_instant_once(some: list[Interval], window: Interval) -> None:
    assert total_length(some) == timedelta(minutes=len(grid(*some)))
    assert grid(*clip_to(some, window)) == grid(*some) & grid(window)


@given(intervals, intervals)
def test_meeting_covering_and_touching_are_what_sets_say(interval: Interval, other: Interval) -> None:
    assert interval.overlaps(other) == bool(grid(interval) & grid(other))
    assert interval.covers(other) == (grid(other) <= grid(interval))
    assert interval.touches(other) == (
        interval.overlaps(other) or interval.end == other.start or other.end == interval.start
    )
    assert (interval.clip(other) is not None) == interval.overlaps(other)


def test_an_interval_contains_its_start_and_not_its_end() -> None:
    hour = between(0, 60)
    assert hour.contains(hour.start)
    assert not hour.contains(hour.end)


def test_growing_leaves_open_ends_open() -> None:
    assert EVERYTHING.expanded(timedelta(days=1)) == EVERYTHING
    late = Interval(START, FOREVER).expanded(timedelta(days=1))
    assert late == Interval(START - timedelta(days=1), FOREVER)
    assert Interval(BEGINNING, START).expanded(timedelta(days=1)).start == BEGINNING


@pytest.mark.parametrize("length", [0, -5])
def test_a_range_that_ends_before_it_starts_is_refused_with_both_ends(length: int) -> None:
    with pytest.raises(
        ValueError, match=r"ends at 2026-11-01T00:\d\d:00\+00:00, which is not after its start .* half-open"
    ):
        between(10, 10 + length)


def test_a_range_without_a_time_zone_is_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"start of a range has no time zone: 2026-11-01T00:00:00. Add an offset"):
        Interval(datetime(2026, 11, 1), START)
