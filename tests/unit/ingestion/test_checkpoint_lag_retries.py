"""Which checkpoint counts, when to stamp it again, how far behind a dataset is, when to try again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.checkpoint import (
    Checkpoint,
    CommitStamp,
    Position,
    holds_nothing_beyond,
    is_restamp_due,
    latest_checkpoint,
    source_position,
    with_rows_followed,
    with_rows_loaded_upto,
)
from ingestion.domain.lag import lag
from ingestion.domain.retries import BACKOFF, MAX_ATTEMPTS, GiveUp, RetryAt, decide_after_failure

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def test_the_latest_is_by_completion_not_by_request() -> None:
    slow, quick = CommitStamp("1", {"at": "slow"}), CommitStamp("2", {"at": "quick"})
    assert latest_checkpoint([slow, quick]) == Checkpoint({"at": "slow"}, "1", 0)


@given(st.lists(st.booleans(), min_size=1))
def test_commits_that_carry_none_are_walked_over(carries: list[bool]) -> None:
    stamps = [CommitStamp(f"{n:03}", {"n": n} if carry else None) for n, carry in enumerate(carries)]
    latest = latest_checkpoint(reversed(stamps))
    last = max((n for n, carry in enumerate(carries) if carry), default=None)
    assert (latest.position["n"] if latest else None) == last
    assert latest is None or latest.commits_since == len(carries) - 1 - latest.position["n"]


def test_an_empty_checkpoint_is_one() -> None:
    assert latest_checkpoint([CommitStamp("1", {})]) is not None


@pytest.mark.parametrize(("since", "due"), [(0, False), (29, False), (30, True)])
def test_a_checkpoint_is_stamped_again_at_half_of_what_is_kept(since: int, due: bool) -> None:
    assert is_restamp_due(Checkpoint({}, "1", since), commits_kept=60) is due


LOADED: Position = with_rows_loaded_upto({"watermark": 3}, "2026-11-17T12:00:00+00:00")


@pytest.mark.parametrize(
    ("upto", "is_whole", "certain"),
    [
        ("2026-11-17T12:00:00+00:00", True, True),
        ("2026-11-17T13:00:00+01:00", True, True),
        ("2026-11-17T11:59:59+00:00", True, False),
        ("2026-11-17T12:00:00+00:00", False, False),
        (None, True, True),
    ],
)
def test_a_whole_reading_has_passed_what_was_loaded_before(upto: str | None, is_whole: bool, certain: bool) -> None:
    followed = with_rows_followed({"watermark": 5}, LOADED, upto=upto, is_whole=is_whole)
    assert holds_nothing_beyond(followed) is certain
    assert source_position(followed) == {"watermark": 5}


def test_a_load_ends_the_certainty_and_only_a_whole_reading_brings_it_back() -> None:
    assert not holds_nothing_beyond({"watermark": 3})
    certain = with_rows_followed({"watermark": 4}, {"watermark": 3}, upto=None, is_whole=True)
    assert holds_nothing_beyond(with_rows_followed({"watermark": 5}, certain, upto=None, is_whole=False))
    unlimited = with_rows_loaded_upto(certain, None)
    later = with_rows_followed({"watermark": 6}, unlimited, upto="2099-01-01T00:00:00+00:00", is_whole=True)
    assert not holds_nothing_beyond(later)


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
    waits = [decide_after_failure(attempt, now=NOW, jitter=0.0) for attempt in range(1, MAX_ATTEMPTS)]
    assert waits == [RetryAt(NOW + BACKOFF.base * 2**n) for n in range(MAX_ATTEMPTS - 1)]
    assert decide_after_failure(MAX_ATTEMPTS, now=NOW, jitter=0.0) == GiveUp(f"it failed {MAX_ATTEMPTS} times")
