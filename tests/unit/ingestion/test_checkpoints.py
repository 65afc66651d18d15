"""Which checkpoint counts, when to stamp it again, how far behind a dataset is, when to try again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.checkpoint import Checkpoint, Stamp, due_for_stamping, latest_checkpoint
from ingestion.domain.lag import lag
from ingestion.domain.retrying import ATTEMPTS, BACKOFF, GiveUp, RetryAt, after_failure

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def test_the_latest_is_by_completion_not_by_request() -> None:
    slow = Stamp("1", "9", {"at": "slow"})
    quick = Stamp("2", "3", {"at": "quick"})
    assert latest_checkpoint([slow, quick]) == Checkpoint({"at": "slow"}, "1", 0)


@given(st.lists(st.booleans(), min_size=1))
def test_commits_that_carry_none_are_walked_over(carries: list[bool]) -> None:
    stamps = [Stamp(f"{n:03}", f"{n:03}", {"n": n} if carry else None) for n, carry in enumerate(carries)]
    found = latest_checkpoint(reversed(stamps))
    last = max((n for n, carry in enumerate(carries) if carry), default=None)
    assert (found.position["n"] if found else None) == last
    assert found is None or found.commits_since == len(carries) - 1 - found.position["n"]


def test_an_empty_checkpoint_is_one() -> None:
    assert latest_checkpoint([Stamp("1", "1", {})]) is not None


@pytest.mark.parametrize(("since", "due"), [(0, False), (29, False), (30, True)])
def test_a_checkpoint_is_stamped_again_at_half_of_what_is_kept(since: int, due: bool) -> None:
    assert due_for_stamping(Checkpoint({}, "1", since), commits_kept=60) is due


@pytest.mark.parametrize(
    ("complete_upto", "behind"),
    [
        (NOW, timedelta()),
        (NOW - MINUTE, MINUTE),
        (NOW - 3 * MINUTE, 3 * MINUTE),
        (NOW - 3 * MINUTE - timedelta(seconds=1), None),
        (NOW + MINUTE, timedelta()),
        (None, None),
    ],
)
def test_the_lag_is_what_no_look_has_covered_yet(complete_upto: datetime | None, behind: timedelta | None) -> None:
    assert lag(complete_upto=complete_upto, every=MINUTE, now=NOW) == behind


def test_a_failure_is_tried_again_later_and_later_and_given_up() -> None:
    waits = [after_failure(attempt, now=NOW, jitter=0.0) for attempt in range(1, ATTEMPTS)]
    assert waits == [RetryAt(NOW + BACKOFF.base * 2**n) for n in range(ATTEMPTS - 1)]
    assert after_failure(ATTEMPTS, now=NOW, jitter=0.0) == GiveUp(f"it failed {ATTEMPTS} times")
