"""Who keeps others waiting is left alone, for longer each time, and is free again once it answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lakehub.kernel.backoff import Backoff, Pauses, Turn

NOW = datetime(2026, 11, 17, tzinfo=UTC)


def pauses() -> Pauses:
    return Pauses(Backoff(timedelta(seconds=10), timedelta(minutes=1)), slow_after_s=3.0)


def seconds(some: Pauses, name: str) -> float | None:
    until = some.until(name, NOW)
    return None if until is None else (until - NOW).total_seconds()


def test_each_silence_is_followed_by_a_longer_pause_up_to_the_cap() -> None:
    some, waits = pauses(), []
    for _ in range(5):
        some.note("host", now=NOW, took_s=5.0, is_silent=True)
        waits.append(seconds(some, "host"))
    assert waits == [15, 25, 45, 65, 65]
    assert seconds(some, "another") is None
    assert some.until("host", NOW + timedelta(seconds=65)) is None


def test_a_quick_answer_or_failure_ends_the_pause() -> None:
    for is_silent in (False, True):
        some = pauses()
        some.note("host", now=NOW, took_s=5.0, is_silent=True)
        some.note("host", now=NOW, took_s=2.9, is_silent=is_silent)
        assert seconds(some, "host") is None
        some.note("host", now=NOW, took_s=5.0, is_silent=True)
        assert seconds(some, "host") == 15, "it is counted anew"


def test_a_late_answer_is_followed_by_the_shortest_pause() -> None:
    some = pauses()
    for _ in range(3):
        some.note("host", now=NOW, took_s=5.0, is_silent=True)
    for _ in range(3):
        some.note("host", now=NOW, took_s=5.0, is_silent=False)
        assert seconds(some, "host") == 15


def test_a_clock_that_is_set_back_prolongs_no_pause() -> None:
    some = pauses()
    some.note("host", now=NOW + timedelta(days=1), took_s=5.0, is_silent=True)
    assert seconds(some, "host") is None


def test_a_turn_ends_with_the_attempt_that_uses_it_up() -> None:
    at = iter((0.0, 4.0, 6.0, 10.0, 20.0, 20.0)).__next__
    turn = Turn(5.0, at)
    with turn.spending() as passed_s:
        assert passed_s() == 4.0
    assert (turn.spent_s, turn.has_time) == (6.0, False)
