"""What an incident affects and lived, against sets of days and minutes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.incident.spans import (
    CannotCombine,
    Incident,
    Span,
    affected_ranges,
    end_span,
    failing_intervals,
    is_over,
    merge_incidents,
    split_incident,
    stale_from,
    with_boundary,
)
from tests.unit.incidents.incident_lives import NOW, day, hours_ago, incident, span


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
