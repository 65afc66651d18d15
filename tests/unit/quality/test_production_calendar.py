"""Which partitions a calendar expects, against a slow model that looks at the clock on the wall every quarter of an hour."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.partitions import Grain, partition_at, partitions_within
from quality.domain.timeliness.production_calendar import BadCalendar, holidays_text, parse_calendar

ZONES = [
    ZoneInfo(name) for name in ("America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Santiago", "UTC")
]
NEW_YORK = ZONES[0]
QUARTER = timedelta(minutes=15)
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
CHANGES = [datetime(2026, month, day, tzinfo=UTC) for month, day in ((3, 7), (4, 4), (9, 5), (10, 3), (10, 31))]
"""Within two days of each the clocks change in one of the zones."""

minutes = st.sampled_from([0, 15, 30, 45])
hours = st.integers(0, 23)
weekdays = st.one_of(st.just("*"), st.sampled_from(WEEKDAYS))
days_off = st.lists(st.sampled_from([date(2026, 3, 8), date(2026, 4, 5), date(2026, 11, 1)]), max_size=2)


@given(
    zone=st.sampled_from(ZONES),
    grain=st.sampled_from([Grain.HOUR, Grain.DAY]),
    begin=st.sampled_from(CHANGES),
    ahead=st.integers(0, 60),
    minute=minutes,
    hour=st.one_of(st.none(), hours),
    weekday=weekdays,
    off=days_off,
)
def test_a_partition_is_expected_where_the_clock_on_the_wall_shows_a_time_of_the_calendar(
    zone: ZoneInfo,
    grain: Grain,
    begin: datetime,
    ahead: int,
    minute: int,
    hour: int | None,
    weekday: str,
    off: list[date],
) -> None:
    calendar = f"{minute} {'*' if hour is None else hour} * * {weekday}"
    partition = partition_at(begin + timedelta(hours=ahead), grain, zone)

    def fires(at: datetime) -> bool:
        local = at.astimezone(zone)
        return (
            local.minute == minute
            and hour in (None, local.hour)
            and weekday in ("*", WEEKDAYS[local.weekday()])
            and local.date() not in off
        )

    times = [partition.start + number * QUARTER for number in range(partition.length // QUARTER)]
    produced = parse_calendar(calendar, holidays_text(off), zone)
    assert produced.expects(partition) == any(map(fires, times))
    assert sorted(produced.times_within(partition)) == [at for at in times if fires(at)]


@pytest.mark.parametrize(
    ("day", "hour", "times"),
    [("2026-03-08", 2, 0), ("2026-03-09", 2, 1), ("2026-11-01", 1, 2), ("2026-11-02", 1, 1)],
    ids=["left out in spring", "the day after", "twice in autumn", "the day after that"],
)
def test_an_hour_of_the_wall_clock_may_come_never_or_twice(day: str, hour: int, times: int) -> None:
    noon = datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=NEW_YORK)
    whole = partition_at(noon, Grain.DAY, NEW_YORK)
    hourly = parse_calendar(f"0 {hour} * * *", "", NEW_YORK)
    assert sum(hourly.expects(partition) for partition in partitions_within(whole, Grain.HOUR, NEW_YORK)) == times
    assert parse_calendar("0 12 * * *", "", NEW_YORK).expects(whole)


def expected(calendar: str, holidays: str, first: date, days: int) -> list[str]:
    span = Interval(
        *(datetime(on.year, on.month, on.day, tzinfo=NEW_YORK) for on in (first, first + timedelta(days=days)))
    )
    produced = parse_calendar(calendar, holidays, NEW_YORK)
    partitions = [
        partition for partition in partitions_within(span, Grain.DAY, NEW_YORK) if produced.expects(partition)
    ]
    return [f"{partition.start.astimezone(NEW_YORK):%a %d}" for partition in partitions]


def test_weekends_and_holidays_are_not_expected() -> None:
    week = date(2026, 11, 23)
    assert expected("0 6 * * mon-fri", "", week, 7) == ["Mon 23", "Tue 24", "Wed 25", "Thu 26", "Fri 27"]
    assert expected("0 6 * * mon-fri", "US", week, 7) == ["Mon 23", "Tue 24", "Wed 25", "Fri 27"]
    assert expected("0 6 * * mon-fri", "US, 2026-11-27", week, 7) == ["Mon 23", "Tue 24", "Wed 25"]
    assert expected("", "US", week, 4) == ["Mon 23", "Tue 24", "Wed 25"]


def test_a_region_has_holidays_of_its_own() -> None:
    lincoln = date(2026, 2, 12)
    assert expected("0 6 * * *", "US", lincoln, 1) == ["Thu 12"]
    assert expected("0 6 * * *", "US-NY", lincoln, 1) == []


def test_months_may_be_expected_by_the_quarter() -> None:
    year = Interval(datetime(2026, 1, 1, tzinfo=NEW_YORK), datetime(2027, 1, 1, tzinfo=NEW_YORK))
    quarterly = parse_calendar("0 0 1 */3 *", "", NEW_YORK)
    months = [month for month in partitions_within(year, Grain.MONTH, NEW_YORK) if quarterly.expects(month)]
    assert [month.start.astimezone(NEW_YORK).month for month in months] == [1, 4, 7, 10]


def test_the_whole_is_always_expected() -> None:
    assert parse_calendar("0 6 * * mon-fri", "US", NEW_YORK).expects(EVERYTHING)


def test_the_next_time_is_after_the_instant_and_no_holiday() -> None:
    produced = parse_calendar("0 6 * * mon-fri", "US", NEW_YORK)
    wednesday = datetime(2026, 11, 25, 6, tzinfo=NEW_YORK)
    assert produced.next_after(wednesday) == wednesday + timedelta(days=2)
    assert parse_calendar("", "US", NEW_YORK).next_after(wednesday) is None


@pytest.mark.parametrize(
    ("calendar", "holidays", "message"),
    [
        ("0 6 * *", "", "has 4 fields; five are wanted"),
        ("0 0 6 * * mon-fri", "", "has 6 fields"),
        ("0 25 * * *", "", r"cannot be read \(Bad hour\)"),
        ("0 0 31 2 *", "", r"cannot be read \(Bad day-of-month\)"),
        ("0 6 4 7 *", "US", "without the holidays of US never comes"),
        ("0 6 * * *", "USS", "no country `USS` is known.*Did you mean `US"),
        ("0 6 * * *", "US-NYC", "US has no region `NYC`.*Did you mean `NY"),
        ("0 6 * * *", "24.12.2026", "'24.12.2026' is no day; write it as in 2026-12-24"),
    ],
)
def test_what_cannot_be_read_says_what_would_do(calendar: str, holidays: str, message: str) -> None:
    with pytest.raises(BadCalendar, match=message):
        parse_calendar(calendar, holidays, NEW_YORK)


def test_years_of_holidays_are_passed_over_by_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some kilobytes of dates held a web thread for seconds, minute by minute."""
    fires = 0

    class Counted(CronSim):
        def __next__(self) -> datetime:
            nonlocal fires
            fires += 1
            return super().__next__()

    days = ", ".join((date(2024, 1, 2) + timedelta(days=number)).isoformat() for number in range(800))
    monkeypatch.setattr("cronsim.CronSim", Counted)
    produced = parse_calendar("* * * * *", days, ZoneInfo("Europe/Berlin"))
    assert produced.next_after(datetime(2024, 1, 2, tzinfo=UTC)) == datetime(2026, 3, 11, 23, tzinfo=UTC)
    assert fires < 2_000
