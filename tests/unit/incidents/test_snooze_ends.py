"""08:00 is that of the clock on the wall."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.incident.snooze_ends import next_morning

NEW_YORK = ZoneInfo("America/New_York")


@pytest.mark.parametrize(
    ("now", "zone", "morning"),
    [
        ("2026-11-17 19:32", "America/New_York", "2026-11-18 13:00"),
        ("2026-11-17 12:59", "America/New_York", "2026-11-17 13:00"),
        ("2026-11-17 13:00", "America/New_York", "2026-11-18 13:00"),
        ("2026-11-17 19:32", "Asia/Kolkata", "2026-11-18 02:30"),
        ("2026-10-31 20:00", "America/New_York", "2026-11-01 13:00"),  # the clock goes back in that night
        ("2026-03-07 20:00", "America/New_York", "2026-03-08 12:00"),  # and forth in this
    ],
)
def test_it_is_the_next_one(now: str, zone: str, morning: str) -> None:
    at = datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert next_morning(at, ZoneInfo(zone)) == datetime.fromisoformat(morning).replace(tzinfo=UTC)


@given(st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC)))
def test_it_comes_and_within_25_hours(now: datetime) -> None:
    morning = next_morning(now, NEW_YORK)
    assert timedelta() < morning - now <= timedelta(hours=25)
    assert (morning.astimezone(NEW_YORK).hour, morning.astimezone(NEW_YORK).minute) == (8, 0)
