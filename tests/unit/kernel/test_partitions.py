"""Partitions in zones whose clocks change: twice a year at night, at midnight itself, by half an hour, by a whole day."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import groupby, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakehub.kernel.interval import EVERYTHING, FOREVER, Interval
from lakehub.kernel.partitions import (
    Grain,
    expanded_by_grain,
    floor_to_bucket,
    offset_changes,
    parse_partition_name,
    partition_at,
    partition_name,
    partitions_within,
    shifted_partition,
)
from tests.rounds import rounds

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
APIA = "Pacific/Apia"
NEW_YORK = ZoneInfo("America/New_York")
ZONES = [
    ZoneInfo(name)
    for name in (
        "America/New_York",
        "America/Sao_Paulo",  # until 2019 there was no midnight on the day that summer began
        "America/Havana",  # midnight comes twice when summer ends
        "Australia/Lord_Howe",  # moves by half an hour
        "America/St_Johns",  # until 2011 the clocks went back one minute after midnight, into the day before
        "Asia/Kolkata",
        "Pacific/Apia",  # skipped 30 December 2011
        "UTC",
    )
]
PARTED = [grain for grain in Grain if grain is not Grain.NONE]

zones = st.sampled_from(ZONES)
grains = st.sampled_from(PARTED)
instants = st.datetimes(datetime(2008, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)) | st.sampled_from(
    [  # near changes of the clocks, which few random times are
        datetime(2026, 11, 1, 6, 30, tzinfo=UTC),
        datetime(2018, 11, 4, 3, tzinfo=UTC),
        datetime(2026, 4, 4, 15, 15, tzinfo=UTC),
        datetime(2026, 10, 3, 15, 45, tzinfo=UTC),
        datetime(2011, 12, 30, 10, 30, tzinfo=UTC),
        datetime(2008, 11, 2, 2, 31, tzinfo=UTC),
        datetime(2012, 11, 4, 5, 30, tzinfo=UTC),
    ]
)


@given(instants, grains, zones)
def test_a_partition_holds_its_instants_and_is_the_same_for_all_of_them(
    instant: datetime, grain: Grain, tz: ZoneInfo
) -> None:
    partition = partition_at(instant, grain, tz)
    assert partition.contains(instant)
    for inside in (partition.start, partition.end - timedelta(microseconds=1)):
        assert partition_at(inside, grain, tz) == partition
    assert floor_to_bucket(instant, grain, tz) == partition.start


@given(instants, grains, zones)
def test_a_name_leads_back_to_its_partition(instant: datetime, grain: Grain, tz: ZoneInfo) -> None:
    partition = partition_at(instant, grain, tz)
    assert parse_partition_name(partition_name(partition, grain, tz), grain, tz) == partition


@given(instants, st.integers(1, 90 * 24), grains, zones)
def test_partitions_tile_the_range_without_gaps(instant: datetime, hours: int, grain: Grain, tz: ZoneInfo) -> None:
    span = Interval(instant, instant + timedelta(hours=hours))
    tiles = list(partitions_within(span, grain, tz))
    assert all(earlier.end == later.start for earlier, later in pairwise(tiles))
    assert tiles[0].contains(span.start)
    assert tiles[-1].start < span.end <= tiles[-1].end


@given(instants, grains, zones)
def test_growing_by_a_grain_takes_the_neighbour_on_each_side(instant: datetime, grain: Grain, tz: ZoneInfo) -> None:
    partition = partition_at(instant, grain, tz)
    grown = expanded_by_grain(partition, grain, tz)
    assert list(partitions_within(grown, grain, tz))[1] == partition
    assert len(list(partitions_within(grown, grain, tz))) == 3


@given(instants, zones)
@settings(max_examples=rounds(8))
def test_hours_are_the_runs_of_minutes_that_show_one_hour_at_one_offset(instant: datetime, tz: ZoneInfo) -> None:
    for run in _runs(instant, tz, lambda local: (local.date(), local.hour, local.utcoffset())):
        assert {partition_at(minute, Grain.HOUR, tz) for minute in (*run[::9], run[-1])} == {
            Interval(run[0], run[-1] + MINUTE)
        }


@given(instants, zones)
@settings(max_examples=rounds(8))
def test_days_begin_where_the_clock_first_shows_their_date(instant: datetime, tz: ZoneInfo) -> None:
    latest = date.min

    def date_reached(local: datetime) -> date:
        nonlocal latest
        latest = max(latest, local.date())
        return latest

    for run in _runs(instant, tz, date_reached):
        assert {partition_at(minute, Grain.DAY, tz) for minute in (*run[::9], run[-1])} == {
            Interval(run[0], run[-1] + MINUTE)
        }


@given(instants, zones, st.sampled_from([Grain.WEEK, Grain.MONTH, Grain.QUARTER, Grain.YEAR]))
def test_what_is_wider_is_made_of_the_days_of_one_calendar_unit(instant: datetime, tz: ZoneInfo, grain: Grain) -> None:
    partition = partition_at(instant, grain, tz)
    days = [
        datetime.fromisoformat(partition_name(day, Grain.DAY, tz))
        for day in partitions_within(partition, Grain.DAY, tz)
    ]
    unit = {
        Grain.WEEK: lambda day: day.isocalendar()[:2],
        Grain.MONTH: lambda day: (day.year, day.month),
        Grain.QUARTER: lambda day: (day.year, (day.month - 1) // 3),
        Grain.YEAR: lambda day: day.year,
    }[grain]
    assert len({unit(day) for day in days}) == 1
    assert {unit(days[0] - DAY), unit(days[-1] + DAY)}.isdisjoint({unit(days[0])})


@given(instants, zones)
def test_the_names_of_hours_are_all_different(instant: datetime, tz: ZoneInfo) -> None:
    hours = list(partitions_within(Interval(instant, instant + 3 * DAY), Grain.HOUR, tz))
    assert len({partition_name(hour, Grain.HOUR, tz) for hour in hours}) == len(hours)


def test_an_hour_that_was_left_out_and_a_day_that_was_skipped_are_refused() -> None:
    with pytest.raises(ValueError, match=r"2026-03-08 02:00 does not exist in America/New_York"):
        parse_partition_name("2026-03-08T02", Grain.HOUR, NEW_YORK)
    with pytest.raises(ValueError, match=r"2011-12-30 does not exist in Pacific/Apia"):
        parse_partition_name("2011-12-30", Grain.DAY, ZoneInfo(APIA))


def test_hours_of_a_zone_half_an_hour_off_utc_begin_on_its_own_clock() -> None:
    nine = parse_partition_name("2026-11-16T09", Grain.HOUR, ZoneInfo("Asia/Kolkata"))
    assert nine == Interval(datetime(2026, 11, 16, 3, 30, tzinfo=UTC), datetime(2026, 11, 16, 4, 30, tzinfo=UTC))


@pytest.mark.parametrize(
    ("grain", "name"),
    [(Grain.WEEK, "2026-W01"), (Grain.QUARTER, "2026-Q4"), (Grain.YEAR, "2026"), (Grain.WEEK, "2020-W53")],
)
def test_weeks_quarters_and_years_have_names(grain: Grain, name: str) -> None:
    assert partition_name(parse_partition_name(name, grain, NEW_YORK), grain, NEW_YORK) == name


@given(instants, zones, grains, grains)
def test_a_grain_nests_in_a_larger_one_where_each_of_its_partitions_does(
    instant: datetime, tz: ZoneInfo, grain: Grain, larger: Grain
) -> None:
    if grain.nests_in(larger) and tz.key != "America/St_Johns":
        assert partition_at(instant, larger, tz).covers(partition_at(instant, grain, tz))


@given(instants, zones)
def test_the_changes_of_an_offset_say_it_at_each_instant(instant: datetime, tz: ZoneInfo) -> None:
    offset = next(seconds for since, seconds in offset_changes(tz) if instant >= since)
    assert timedelta(seconds=offset) == instant.astimezone(tz).utcoffset()


def _runs(around: datetime, tz: ZoneInfo, key: Callable[[datetime], object]) -> Iterator[list[datetime]]:
    """The minutes of some days in runs of the same key; without the first and the last, which may be cut off."""
    first = around.replace(second=0, microsecond=0) - 2 * DAY
    minutes = (first + number * MINUTE for number in range(4 * 24 * 60))
    runs = [list(run) for _, run in groupby(minutes, lambda minute: key(minute.astimezone(tz)))]
    yield from runs[1:-1]


@pytest.mark.parametrize(("day", "hours"), [("2026-03-08", 23), ("2026-11-01", 25), ("2026-11-16", 24)])
def test_a_day_has_23_or_25_hours_when_the_clocks_change(day: str, hours: int) -> None:
    partition = parse_partition_name(day, Grain.DAY, NEW_YORK)
    assert partition.length == timedelta(hours=hours)
    assert partition_name(partition, Grain.DAY, NEW_YORK) == day


def test_the_hour_that_comes_twice_is_two_partitions() -> None:
    night = parse_partition_name("2026-11-01", Grain.DAY, NEW_YORK)
    hours = list(partitions_within(night, Grain.HOUR, NEW_YORK))
    assert len(hours) == 25
    assert [partition_name(hour, Grain.HOUR, NEW_YORK) for hour in hours[1:3]] == [
        "2026-11-01T01",
        "2026-11-01T01-0500",
    ]


def test_growing_leaves_open_ends_open_and_a_whole_table_whole() -> None:
    stale = Interval(datetime(2026, 11, 16, tzinfo=UTC), FOREVER)
    assert expanded_by_grain(stale, Grain.DAY, ZoneInfo("UTC")) == Interval(datetime(2026, 11, 15, tzinfo=UTC), FOREVER)
    assert expanded_by_grain(EVERYTHING, Grain.NONE, NEW_YORK) == EVERYTHING
    assert expanded_by_grain(EVERYTHING, Grain.DAY, NEW_YORK) == EVERYTHING


def test_a_table_without_partitions_is_one_piece() -> None:
    moment = datetime(2026, 11, 16, tzinfo=UTC)
    assert partition_at(moment, Grain.NONE, NEW_YORK) == EVERYTHING
    assert list(partitions_within(Interval(moment, FOREVER), Grain.NONE, NEW_YORK)) == [EVERYTHING]
    assert parse_partition_name("", Grain.NONE, NEW_YORK) == EVERYTHING


def test_a_wrong_name_is_refused_with_the_form_wanted() -> None:
    with pytest.raises(
        ValueError, match=r"'16.11.2026' is not the name of a partition by day: expected the form %Y-%m-%d"
    ):
        parse_partition_name("16.11.2026", Grain.DAY, NEW_YORK)


@given(instants, zones.filter(lambda tz: tz.key != APIA), st.integers(0, 400))
def test_a_day_shifted_by_days_is_the_day_of_that_date(instant: datetime, tz: ZoneInfo, days: int) -> None:
    tested = partition_at(instant, Grain.DAY, tz)
    there = shifted_partition(tested, -timedelta(days=days), Grain.DAY, tz)
    date = datetime.fromisoformat(partition_name(tested, Grain.DAY, tz)) - timedelta(days=days)
    assert partition_name(there, Grain.DAY, tz) == date.date().isoformat()


def test_an_hour_keeps_its_place_on_the_clock_over_whole_days_and_moves_in_real_time_by_hours() -> None:
    nine = partition_at(
        datetime(2026, 11, 3, 9, tzinfo=NEW_YORK), Grain.HOUR, NEW_YORK
    )  # the clocks changed on the 1st
    week, day = (shifted_partition(nine, -timedelta(days=days), Grain.HOUR, NEW_YORK) for days in (7, 1))
    assert [partition.start.astimezone(NEW_YORK).hour for partition in (week, day)] == [9, 9]
    assert shifted_partition(nine, -timedelta(hours=60), Grain.HOUR, NEW_YORK).start == nine.start - timedelta(hours=61)


def test_a_month_shifted_is_the_month_that_holds_the_day() -> None:
    march = parse_partition_name("2026-03", Grain.MONTH, NEW_YORK)
    shifts = [-timedelta(days=days) for days in (1, 28, 29, 365)]
    names = [
        partition_name(shifted_partition(march, shift, Grain.MONTH, NEW_YORK), Grain.MONTH, NEW_YORK)
        for shift in shifts
    ]
    assert names == ["2026-02", "2026-02", "2026-01", "2025-03"]


@pytest.mark.parametrize(("partition", "grain"), [(EVERYTHING, Grain.DAY), (EVERYTHING, Grain.NONE)])
def test_the_whole_has_no_earlier_partition(partition: Interval, grain: Grain) -> None:
    with pytest.raises(ValueError, match="no earlier or later partition"):
        shifted_partition(partition, -timedelta(days=1), grain, NEW_YORK)


def test_before_all_times_there_is_no_partition() -> None:
    first = partition_at(datetime(1900, 1, 5, tzinfo=UTC), Grain.DAY, NEW_YORK)
    with pytest.raises(ValueError, match="there is no partition 30 days before 1900-01-04"):
        shifted_partition(first, -timedelta(days=30), Grain.DAY, NEW_YORK)


@pytest.mark.parametrize("tz", ["UTC", "Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize(
    ("grain", "name"),
    [
        (Grain.HOUR, "9999-12-31T23"),
        (Grain.HOUR, "0001-01-01T00"),
        (Grain.DAY, "9999-12-31"),
        (Grain.DAY, "0001-01-01"),
        (Grain.WEEK, "9999-W52"),
        (Grain.MONTH, "9999-12"),
        (Grain.QUARTER, "9999-Q4"),
        (Grain.YEAR, "9999"),
        (Grain.YEAR, "0001"),
    ],
)
def test_what_stands_for_never_is_refused_as_every_wrong_name_is(grain: Grain, name: str, tz: str) -> None:
    with pytest.raises(ValueError, match="lies outside the years 1900 to 9998"):
        parse_partition_name(name, grain, ZoneInfo(tz))
