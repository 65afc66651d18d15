from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from incidents.domain.alerting.suppression import (
    MAX_RERUN_WAIT,
    AwaitRerun,
    DropMessage,
    HoldMessage,
    MessageSubject,
    RerunFirst,
    SendDecision,
    SendNow,
    Suppressor,
    decide_sending,
    find_suppressor,
)
from lakehub.kernel.interval import FOREVER, Interval

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
DC1, DC2 = 1, 2


def days_from(first: int, days: int | None = 1) -> Interval:
    start = datetime(2026, 11, first, tzinfo=UTC)
    return Interval(start, FOREVER if days is None else start + timedelta(days=days))


LATE = Suppressor(DC2, days_from(16, None), incident=5, name="flights@dc2")
MISSING_ROWS = MessageSubject("consistency", frozenset({DC1, DC2}), (days_from(16),))


def decided(
    subject: MessageSubject,
    *stale: Suppressor,
    was_held: bool = False,
    released_at: datetime | None = None,
    now: datetime = NOW,
) -> SendDecision:
    return decide_sending(subject, stale, was_held=was_held, released_at=released_at, now=now)


def test_a_message_goes_out_when_nothing_is_stale() -> None:
    assert decided(MISSING_ROWS) == SendNow()


def test_a_message_is_held_while_a_copy_involved_is_stale_over_the_same_days() -> None:
    assert decided(MISSING_ROWS, LATE) == HoldMessage("flights@dc2 is stale: #5", by=LATE)


def test_stale_data_of_other_days_or_copies_explains_nothing() -> None:
    assert decided(replace(MISSING_ROWS, affected=(days_from(14),)), LATE) == SendNow()
    assert decided(replace(MISSING_ROWS, copies=frozenset({DC1})), LATE) == SendNow()


def test_a_hole_before_the_front_is_told_at_once_whatever_else_is_late() -> None:
    assert decided(replace(MISSING_ROWS, affected=(days_from(15), days_from(17))), LATE) == SendNow()
    assert decided(replace(MISSING_ROWS, affected=(days_from(15, 2),)), LATE) == SendNow()
    both_late = (days_from(16), days_from(20))
    assert isinstance(decided(replace(MISSING_ROWS, affected=both_late), LATE), HoldMessage)


def test_freshness_is_never_held_by_freshness() -> None:
    assert find_suppressor(replace(MISSING_ROWS, category="freshness"), [LATE]) is None


def test_only_the_first_that_explains_it_is_named() -> None:
    other = Suppressor(DC1, days_from(16, None))
    assert find_suppressor(MISSING_ROWS, [Suppressor(DC1, days_from(20, None)), other, LATE]) == other


def test_when_freshness_recovers_the_units_are_rerun_before_anybody_is_told() -> None:
    assert decided(MISSING_ROWS, was_held=True) == RerunFirst()
    assert decided(MISSING_ROWS, was_held=True, released_at=NOW) == AwaitRerun(NOW + MAX_RERUN_WAIT)


def test_it_goes_out_when_the_reruns_still_fail() -> None:
    retested = replace(MISSING_ROWS, retested_at=NOW)
    assert decided(retested, was_held=True, released_at=NOW, now=NOW + timedelta(minutes=1)) == SendNow()


def test_reruns_that_cannot_run_do_not_keep_it_back() -> None:
    assert decided(MISSING_ROWS, was_held=True, released_at=NOW, now=NOW + MAX_RERUN_WAIT) == SendNow()


def test_it_is_dropped_when_all_is_well() -> None:
    healed = replace(MISSING_ROWS, is_failing=False)
    assert decided(healed, was_held=True) == DropMessage("resolved while it was held")
    assert decided(healed, LATE) == DropMessage("resolved before it was sent")


def test_it_is_held_again_when_the_data_gets_stale_again() -> None:
    assert decided(MISSING_ROWS, LATE, was_held=True, released_at=NOW) == HoldMessage(
        "flights@dc2 is stale: #5", by=LATE
    )


def test_a_snooze_and_a_grace_period_hold_it_until_they_end() -> None:
    evening = NOW + timedelta(hours=6)
    assert decided(replace(MISSING_ROWS, snoozed_until=evening)) == HoldMessage("snoozed", until=evening)
    assert decided(replace(MISSING_ROWS, grace_until=evening)) == HoldMessage("in grace", until=evening)
    assert decided(replace(MISSING_ROWS, snoozed_until=evening), now=evening) == SendNow()
