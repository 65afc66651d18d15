from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lakehub.demo.flights.replay_window import replay_window_at

CLOCKS_WENT_BACK = date(2013, 11, 3)
LAST_DAY_OF_THE_DATA = date(2013, 12, 30)
instants = st.datetimes(datetime(2024, 1, 1), datetime(2060, 1, 1)).map(lambda instant: instant.replace(tzinfo=UTC))


@given(instants)
def test_a_sunday_stays_a_sunday(now: datetime) -> None:
    assert (CLOCKS_WENT_BACK + replay_window_at(now).shift).weekday() == 6


@given(instants)
def test_the_window_holds_the_hour_that_came_twice(now: datetime) -> None:
    window = replay_window_at(now)
    assert window.first_day < CLOCKS_WENT_BACK + window.shift < now.date()


@given(instants)
def test_there_are_flights_to_play_after_now(now: datetime) -> None:
    window = replay_window_at(now)
    assert now.date() + timedelta(days=3) <= window.last_day <= LAST_DAY_OF_THE_DATA + window.shift


def test_in_november_2026_it_is_moved_by_678_weeks() -> None:
    assert replay_window_at(datetime(2026, 11, 21, 12, tzinfo=UTC)).weeks == 678
