"""Partitions in zones whose clocks change: twice a year at night, at midnight itself, by half an hour, by a whole day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehub.kernel.interval import EVERYTHING, FOREVER, Interval
from lakehub.kernel.partitions import (
    Grain,
    expanded_by_grain,
    floor_to_bucket,
    parse_partition_name,
    partition_at,
    partition_name,
    partitions_within,
    shifted_partition,
)

APIA = "Pacific/Apia"
NEW_YORK = ZoneInfo("America/New_York")
ZONES = [
    ZoneInfo(name)
    for name in (
        "America/New_York",
        "America/Sao_Paulo",  # until 2019 there was no midnight on the day that summer began
        "America/Havana",  # midnight comes twice when summer ends
        "Australia/Lord_Howe",  # moves by half an hour
        "Asia/Kathmandu",
        "Pacific/Apia",  # skipped 30 December 2011
        "UTC",
    )
]
PARTED = [Grain.HOUR, Grain.DAY, Grain.MONTH]

zones = st.sampled_from(ZONES)
grains = st.sampled_from(PARTED)
instants = st.datetimes(datetime(2008, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))


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


@given(instants, st.integers(1, 90 * 24), st.sampled_from([Grain.DAY, Grain.MONTH]), zones)
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


@pytest.mark.parametrize(("day", "hours"), [("2026-03-08", 23), ("2026-11-01", 25), ("2026-11-16", 24)])
def test_a_day_has_23_or_25_hours_when_the_clocks_change(day: str, hours: int) -> None:
    partition = parse_partition_name(day, Grain.DAY, NEW_YORK)
    assert partition.length == timedelta(hours=hours)
    assert partition_name(partition, Grain.DAY, NEW_YORK) == day


def test_the_hour_that_comes_twice_is_two_partitions() -> None:
    night = parse_partition_name("2026-11-01", Grain.DAY, NEW_YORK)
    hours = list(partitions_within(night, Grain.HOUR, NEW_YORK))
    assert len(hours) == 25
    assert [partition_name(hour, Grain.HOUR, NEW_YORK) for hour in hours[1:3]] == ["2026-11-01T05", "2026-11-01T06"]


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
