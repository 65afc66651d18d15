"""The fate of events: sums hold, and the end state does not depend on how the events came."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.accounting import Event, RowCounts, RowFate, fates_of

EVENTS = st.builds(
    lambda key, reference, value: Event(key, reference, (key, reference, value)),
    st.sampled_from("abc"),
    st.integers(0, 4),
    st.just("v"),
)
"""Two events with one key and one reference key are the same event: the content follows from them."""
COUNTS = st.builds(RowCounts, *([st.integers(0, 9)] * 5))


@given(st.lists(EVENTS), st.lists(EVENTS))
def test_every_event_has_one_fate_and_each_key_is_applied_once_at_most(
    events: list[Event], before: list[Event]
) -> None:
    fates = fates_of(events, stored(before))
    applied = [event.key for event, fate in zip(events, fates, strict=True) if fate is RowFate.APPLIED]
    assert len(fates) == len(events)
    assert len(applied) == len(set(applied))


@given(st.lists(EVENTS), st.randoms(use_true_random=False))
def test_the_end_state_does_not_depend_on_order_or_batches(events: list[Event], chance: object) -> None:
    shuffled = list(events)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis has no name for its randoms
    half = len(shuffled) // 2
    assert after([shuffled[:half], shuffled[half:]]) == after([events])


@given(st.lists(EVENTS))
def test_what_comes_again_is_not_applied_again(events: list[Event]) -> None:
    state = after([events])
    assert RowFate.APPLIED not in fates_of(events, state)


def test_of_equal_reference_keys_the_later_wins() -> None:
    first, second = Event("a", 1, "old"), Event("a", 1, "new")
    assert fates_of([first, second], {}) == (RowFate.SUPERSEDED, RowFate.APPLIED)


def test_the_same_row_twice_in_a_batch_is_redelivered() -> None:
    event = Event("a", 1, "row")
    assert fates_of([event, event], {}) == (RowFate.REDELIVERED, RowFate.APPLIED)


def test_without_a_reference_key_what_is_read_later_wins() -> None:
    held = Event("a", None, "x")
    assert fates_of([Event("a", None, "y")], {"a": held}) == (RowFate.APPLIED,)
    assert fates_of([held], {"a": held}) == (RowFate.REDELIVERED,)


@given(COUNTS, COUNTS, COUNTS)
def test_counts_add_up_in_any_grouping(first: RowCounts, two: RowCounts, three: RowCounts) -> None:
    assert (first + two) + three == first + (two + three)
    assert (first + two).unaccounted == first.unaccounted + two.unaccounted


def stored(events: Iterable[Event]) -> dict[object, Event]:
    return {event.key: event for event in events}


def after(batches: Iterable[Sequence[Event]]) -> dict[object, Event]:
    """The table after the batches."""
    state: dict[object, Event] = {}
    for batch in batches:
        fates = fates_of(batch, state)
        state |= {event.key: event for event, fate in zip(batch, fates, strict=True) if fate is RowFate.APPLIED}
    return state
