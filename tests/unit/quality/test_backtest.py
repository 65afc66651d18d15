"""Whom a test would have woken: failures side by side are one alarm; freshness by when commits came."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.partitions import Grain
from quality.domain.backtest import (
    Arrival,
    FreshnessLimit,
    PastRun,
    SimulatedAlert,
    complete_at,
    freshness_limit,
    late_runs,
    simulate_alerts,
    simulate_lateness_alerts,
)
from quality.domain.language import parse

ZONE = ZoneInfo("UTC")
FIRST = datetime(2026, 11, 1, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def day(number: int) -> Interval:
    return Interval(FIRST + number * DAY, FIRST + (number + 1) * DAY)


def run(number: int, outcome: Outcome = Outcome.FAIL) -> PastRun:
    return PastRun(day(number), f"day {number}", day(number).end + 2 * HOUR, outcome)


def alarms(
    *numbers: int, sustain: timedelta = HOUR, now: datetime = FIRST + 99 * DAY
) -> list[tuple[str, str, datetime]]:
    runs = [run(number, Outcome.FAIL if number in numbers else Outcome.PASS) for number in range(30)]
    pages = simulate_alerts(runs, sustain=sustain, grain=Grain.DAY, zone=ZONE, now=now)
    return [(page.first, page.last, page.at) for page in pages]


def test_days_that_fail_side_by_side_are_one_alarm() -> None:
    assert alarms(3, 4, 5, 9) == [
        ("day 3", "day 5", day(3).end + 3 * HOUR),
        ("day 9", "day 9", day(9).end + 3 * HOUR),
    ]
    assert alarms() == []


def test_a_failure_that_has_not_lasted_yet_wakes_nobody() -> None:
    assert alarms(9, now=day(9).end + 2 * HOUR + timedelta(minutes=59)) == []
    assert len(alarms(9, now=day(9).end + 3 * HOUR)) == 1


def test_what_could_not_be_told_wakes_nobody() -> None:
    unknown = [run(1, Outcome.ERROR), run(2, Outcome.NO_DATA)]
    assert simulate_alerts(unknown, sustain=HOUR, grain=Grain.DAY, zone=ZONE, now=FIRST + 9 * DAY) == ()


@given(st.sets(st.integers(0, 29)))
def test_as_many_alarms_as_there_are_runs_of_days(numbers: set[int]) -> None:
    assert len(alarms(*numbers)) == sum(number - 1 not in numbers for number in numbers)


@pytest.mark.parametrize(
    ("written", "limit"),
    [
        ("freshness(this) < 2h", FreshnessLimit(2 * HOUR, False)),
        ("freshness(this, upstream) <= 30m", FreshnessLimit(HOUR / 2, True)),
        ("2h > freshness(this)", FreshnessLimit(2 * HOUR, False)),
        ("freshness(planes) < 2h", None),
        ("freshness(this) > 2h", None),
        ("freshness(this) < 2h and rows(this) > 0", None),
        ("rows(this) > 0", None),
    ],
)
def test_the_limit_of_a_test_of_freshness_is_known(written: str, limit: FreshnessLimit | None) -> None:
    assert freshness_limit(parse(written)) == limit


def test_a_partition_is_complete_with_the_commit_that_brings_99_9_percent() -> None:
    came = [Arrival(FIRST + 2 * HOUR, 499), Arrival(FIRST, 500), Arrival(FIRST + 3 * HOUR, 1)]
    assert complete_at(came, 1000) == FIRST + 2 * HOUR
    assert complete_at(came[:1], 1000) is None


def late(
    hours: Sequence[float | None], now: datetime = FIRST + 9 * DAY, sustain: timedelta = HOUR
) -> tuple[list[str], list[SimulatedAlert]]:
    """Days that were complete so many hours after their end (None: never)."""
    named = [(day(number), f"day {number}") for number in range(len(hours))]
    came = {
        day(number): [Arrival(day(number).end + wait * HOUR, 10)]
        for number, wait in enumerate(hours)
        if wait is not None
    }
    runs = list(late_runs(named, came, {name: 10 for _, name in named}, FreshnessLimit(2 * HOUR, False), now=now))
    return [f"{past_run.outcome} {past_run.observed}" for past_run in runs], list(
        simulate_lateness_alerts(runs, sustain=sustain, now=now)
    )


def test_a_day_that_came_late_alarms_while_it_was_late() -> None:
    outcomes, pages = late([1, 6, 1.5])
    assert outcomes == ["pass 1 h", "fail 6 h", "pass 1 h 30 min"]
    assert [(page.at, page.ended_at, page.first) for page in pages] == [
        (day(1).end + 3 * HOUR, day(1).end + 6 * HOUR, "day 1")
    ]


def test_days_that_were_late_together_are_one_alarm_and_one_that_lasted_too_short_none() -> None:
    assert [(page.first, page.last) for page in late([30, 5])[1]] == [("day 0", "day 1")]
    assert late([2.5])[1] == []


def test_a_day_that_never_came_is_late_until_now() -> None:
    outcomes, pages = late([None], now=day(0).end + 5 * HOUR)
    assert (outcomes, pages[0].ended_at) == (["fail 5 h"], None)


def test_nothing_is_late_that_nobody_expected() -> None:
    (only,) = late_runs([(day(0), "day 0")], {}, {}, FreshnessLimit(HOUR, True), now=FIRST + 9 * DAY)
    assert (only.outcome, only.cause) == (Outcome.NO_DATA, "there are no rows")
