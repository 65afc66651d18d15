"""Quiet hours and digests against a model that walks the minutes and reads the clock."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.alerting.quiet_hours import ALL_DAYS, DigestInterval, QuietHours, first_instant, next_digest_at

MINUTE = timedelta(minutes=1)
NEW_YORK = ZoneInfo("America/New_York")
ZONES = [ZoneInfo(name) for name in ("America/New_York", "Europe/Lisbon", "Australia/Lord_Howe", "Asia/Kolkata")]
CHANGES = [
    date(2026, 3, 8),
    date(2026, 11, 1),
    date(2026, 3, 29),
    date(2026, 10, 25),
    date(2026, 4, 5),
    date(2026, 10, 4),
]
"""Days on which the clocks of one of them change."""

hours = st.builds(time, st.integers(0, 23), st.sampled_from([0, 1, 15, 30, 59]))
around = st.builds(
    lambda day, minutes: datetime(day.year, day.month, day.day, tzinfo=UTC) + minutes * MINUTE,
    st.sampled_from(CHANGES),
    st.integers(-12 * 60, 36 * 60),
)
quiet_hours = st.builds(QuietHours, hours, hours, st.sampled_from(ZONES), st.frozensets(st.integers(0, 6), min_size=1))


def wall(at: datetime, zone: ZoneInfo) -> datetime:
    return at.astimezone(zone).replace(tzinfo=None, fold=0)


@cache
def reached(what: datetime, zone: ZoneInfo, *, last: bool) -> datetime:
    """The first (last) minute at which the clock steps up to `what` or past it, found by walking."""
    minutes = [what.replace(tzinfo=UTC) + minute * MINUTE for minute in range(-12 * 60, 7 * 60)]
    shown = [wall(minute, zone) for minute in minutes]
    steps = [now for now, before, after in zip(minutes[1:], shown, shown[1:], strict=False) if before < what <= after]
    return steps[-1 if last else 0]


def is_quiet(hours: QuietHours, at: datetime) -> bool:
    today = at.astimezone(hours.zone).date()
    for day in (today - timedelta(days=days) for days in (0, 1)):
        if day.weekday() not in hours.days:
            continue
        until = day if hours.end > hours.start else day + timedelta(days=1)
        start = reached(datetime.combine(day, hours.start), hours.zone, last=False)
        if start <= at < reached(datetime.combine(until, hours.end), hours.zone, last=True):
            return True
    return False


@given(quiet_hours, around)
def test_it_is_quiet_exactly_when_the_clock_says_so(hours: QuietHours, at: datetime) -> None:
    assert (hours.end_at(at) is not None) == is_quiet(hours, at)


@given(quiet_hours, around)
def test_they_end_at_the_first_minute_that_is_not_quiet(hours: QuietHours, at: datetime) -> None:
    over = hours.end_at(at)
    if over is None or hours.is_always:
        return
    assert over > at
    assert not is_quiet(hours, over)
    assert is_quiet(hours, over - MINUTE)
    assert hours.end_at(at + (over - at) / 2) == over, "nothing within them is loud"


def test_a_night_over_the_end_of_summer_time_is_an_hour_longer() -> None:
    night = QuietHours(time(22), time(7), NEW_YORK)
    assert night.end_at(datetime(2026, 11, 1, 2, tzinfo=UTC)) == datetime(2026, 11, 1, 12, tzinfo=UTC)
    assert night.end_at(datetime(2026, 11, 1, 1, 59, tzinfo=UTC)) is None
    assert night.end_at(datetime(2026, 11, 1, 12, tzinfo=UTC)) is None


def test_a_weekend_is_one_piece() -> None:
    weekend = QuietHours(time(0), time(0), NEW_YORK, frozenset({5, 6}))
    assert weekend.end_at(datetime(2026, 11, 21, 18, tzinfo=UTC)) == datetime(2026, 11, 23, 5, tzinfo=UTC)


def test_a_night_that_begins_on_friday_ends_on_saturday() -> None:
    friday = QuietHours(time(22), time(7), ZoneInfo("UTC"), frozenset({4}))
    assert friday.end_at(datetime(2026, 11, 21, 6, tzinfo=UTC)) == datetime(2026, 11, 21, 7, tzinfo=UTC)
    assert friday.end_at(datetime(2026, 11, 21, 23, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("end", "days", "always"), [(time(0), ALL_DAYS, True), (time(0), frozenset({1}), False), (time(1), ALL_DAYS, False)]
)
def test_hours_that_never_end_are_known(end: time, days: frozenset[int], always: bool) -> None:
    assert QuietHours(time(0), end, NEW_YORK, days).is_always is always


def test_a_time_that_the_clocks_skip_is_when_they_jump() -> None:
    assert first_instant(datetime(2026, 3, 8, 2, 30), NEW_YORK) == datetime(2026, 3, 8, 7, tzinfo=UTC)


@given(hours, st.sampled_from(ZONES), around)
def test_a_daily_digest_goes_out_when_the_clock_next_reaches_its_time(
    at: time, zone: ZoneInfo, collected: datetime
) -> None:
    digest_at = next_digest_at(collected, DigestInterval.DAILY, at=at, zone=zone)
    today = collected.astimezone(zone).date()
    slots = [reached(datetime.combine(today + timedelta(days=days), at), zone, last=False) for days in range(3)]
    assert digest_at == next(slot for slot in slots if slot > collected)


@given(around, st.integers(0, 59))
def test_an_hourly_digest_waits_for_the_next_full_hour(collected: datetime, seconds: int) -> None:
    collected += timedelta(seconds=seconds)
    digest_at = next_digest_at(collected, DigestInterval.HOURLY, at=time(8), zone=NEW_YORK)
    assert timedelta() < digest_at - collected <= timedelta(hours=1)
    assert (digest_at.minute, digest_at.second) == (0, 0)


@pytest.mark.parametrize(("end", "over"), [(time(1, 30), "06:30"), (time(1), "05:00"), (time(2), "07:00")])
def test_an_end_that_the_clock_shows_twice_is_the_last_one(end: time, over: str) -> None:
    """On 1 Nov the clocks of New York go back from 02:00 to 01:00; 01:00 is reached once only."""
    end_at = QuietHours(time(22), end, NEW_YORK).end_at(datetime(2026, 11, 1, 4, tzinfo=UTC))
    assert end_at == datetime.fromisoformat(f"2026-11-01T{over}:00+00:00")
