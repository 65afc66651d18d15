"""What one long run has seen, when it looks next, and when its sums are written down."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ingestion.domain.accounting import RowCounts
from ingestion.domain.following import TELL_EVERY, FollowSums, is_telling_due, next_look_at

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_looks_and_batches_add_up() -> None:
    sums = FollowSums().after_look(NOW)
    for number in (1, 2):
        counts = RowCounts(read=4, applied=1, superseded=1, redelivered=1, errors=1)
        sums = sums.after_batch(counts, committed_at=NOW + number * SECOND)
    sums = sums.after_look(NOW + 5 * SECOND)
    assert sums == FollowSums(2, 2, 8, 2, 2, 2, 2, NOW + 5 * SECOND, NOW + 2 * SECOND)


def test_sums_that_were_written_down_go_on() -> None:
    sums = FollowSums(looks=7, read=3, applied=3, looked_at=NOW)
    assert FollowSums.from_json(sums.to_json()) == sums
    assert FollowSums.from_json({}) == FollowSums()
    assert FollowSums.from_json({"phase": "read", "rows_read": 5, "looks": 2}) == FollowSums(looks=2)


def test_a_look_is_due_an_interval_after_the_last_one_began() -> None:
    assert next_look_at(None, 5 * SECOND, now=NOW) == NOW
    assert next_look_at(NOW - SECOND, 5 * SECOND, now=NOW) == NOW + 4 * SECOND
    assert next_look_at(NOW + SECOND, 5 * SECOND, now=NOW) == NOW, "noted by a clock that was ahead"


def test_sums_are_told_once_a_minute() -> None:
    assert is_telling_due(None, now=NOW)
    assert not is_telling_due(NOW, now=NOW + TELL_EVERY - SECOND)
    assert is_telling_due(NOW, now=NOW + TELL_EVERY)
    assert is_telling_due(NOW + SECOND, now=NOW), "told by a clock that was ahead"


def test_what_a_batch_has_brought_is_told_soon_and_told_once() -> None:
    told_at = datetime(2026, 11, 26, tzinfo=UTC)
    committed_at = told_at + timedelta(seconds=1)
    due = [is_telling_due(told_at, now=told_at + timedelta(seconds=s), committed_at=committed_at) for s in (4, 5)]
    assert due == [False, True]
    a_minute_later = told_at + timedelta(seconds=59)
    assert not is_telling_due(told_at, now=a_minute_later, committed_at=told_at)
    assert not is_telling_due(told_at, now=a_minute_later, committed_at=told_at + timedelta(hours=3)), (
        "a clock that was ahead"
    )
