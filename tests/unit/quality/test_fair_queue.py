"""Whose turn it is, as a pure order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quality.domain.scheduling.fair_queue import QueuedCopy, fair_order

DUE, LATE = 1, 2

anything = st.builds(
    QueuedCopy,
    copy=st.integers(1, 40),
    lane=st.integers(0, 2),
    tier=st.integers(0, 5),
    team=st.integers(1, 4),
    team_served=st.integers(0, 5),
    copy_served=st.integers(0, 5),
)


def copies(*waiting: QueuedCopy) -> list[int]:
    return [queued.copy for queued in fair_order(waiting)]


def test_the_lane_goes_before_the_tier() -> None:
    assert copies(QueuedCopy(1, LATE, 0, 1), QueuedCopy(2, DUE, 5, 1), QueuedCopy(3, DUE, 0, 1)) == [3, 2, 1]


def test_teams_take_turns_however_many_copies_they_have() -> None:
    many = [QueuedCopy(copy, DUE, 2, team=1) for copy in range(1, 6)]
    few = [QueuedCopy(copy, DUE, 2, team=2) for copy in (11, 12)]
    assert copies(*many, *few) == [1, 11, 2, 12, 3, 4, 5]


def test_the_team_that_waits_longest_begins() -> None:
    assert copies(QueuedCopy(1, DUE, 2, 1, team_served=9), QueuedCopy(2, DUE, 2, 2, team_served=4)) == [2, 1]


def test_within_a_team_the_copy_that_waits_longest_goes_first_and_a_new_one_before_it() -> None:
    served = [QueuedCopy(copy, DUE, 2, 1, team_served=7, copy_served=at) for copy, at in ((1, 7), (2, 3), (3, 0))]
    assert copies(*served) == [3, 2, 1]


@given(st.lists(anything, max_size=30))
def test_the_order_keeps_everyone_and_never_puts_a_lane_or_tier_before_a_more_urgent_one(
    waiting: list[QueuedCopy],
) -> None:
    order = fair_order(waiting)
    assert sorted(order, key=repr) == sorted(waiting, key=repr)
    urgency = [(queued.lane, queued.tier) for queued in order]
    assert urgency == sorted(urgency)


@given(st.lists(anything, max_size=30))
def test_no_team_is_served_twice_more_than_another_that_still_waits(waiting: list[QueuedCopy]) -> None:
    group = [queued for queued in fair_order(waiting) if (queued.lane, queued.tier) == (1, 2)]
    for place in range(len(group)):
        before, after = [queued.team for queued in group[:place]], {queued.team for queued in group[place:]}
        assert max((before.count(team) for team in before), default=0) <= 1 + min(
            (before.count(team) for team in after), default=place
        )
