"""Partitions in zones whose clocks change: twice a year at night, at midnight itself, by half an hour, by a whole day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehub.kernel.calendar import (
    Grain,
    floor_to_bucket,
    grown_by_grain,
    partition_at,
    partition_name,
    partition_named,
    partitions_within,
)
from lakehub.kernel.interval import EVERYTHING, FOREVER, Interval

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
    assert partition_named(partition_name(partition, grain, tz), grain, tz) == partition


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
    grown = grown_by_grain(partition, grain, tz)
    assert list(partitions_within(grown, grain, tz))[1] == partition
    assert len(list(partitions_within(grown, grain, tz))) == 3


@pytest.mark.parametrize(("day", "hours"), [("2026-03-08", 23), ("2026-11-01", 25), ("2026-11-16", 24)])
def test_a_day_has_23_or_25_hours_when_the_clocks_change(day: str, hours: int) -> None:
    partition = partition_named(day, Grain.DAY, NEW_YORK)
    assert partition.length == timedelta(hours=hours)
    assert partition_name(partition, Grain.DAY, NEW_YORK) == day


def test_the_hour_that_comes_twice_is_two_partitions() -> None:
    night = partition_named("2026-11-01", Grain.DAY, NEW_YORK)
    hours = list(partitions_within(night, Grain.HOUR, NEW_YORK))
    assert len(hours) == 25
    assert [partition_name(hour, Grain.HOUR, NEW_YORK) for hour in hours[1:3]] == ["2026-11-01T05", "2026-11-01T06"]


def test_growing_leaves_open_ends_open_and_a_whole_table_whole() -> None:
    stale = Interval(datetime(2026, 11, 16, tzinfo=UTC), FOREVER)
    assert grown_by_grain(stale, Grain.DAY, ZoneInfo("UTC")) == Interval(datetime(2026, 11, 15, tzinfo=UTC), FOREVER)
    assert grown_by_grain(EVERYTHING, Grain.NONE, NEW_YORK) == EVERYTHING
    assert grown_by_grain(EVERYTHING, Grain.DAY, NEW_YORK) == EVERYTHING


def test_a_table_without_partitions_is_one_piece() -> None:
    moment = datetime(2026, 11, 16, tzinfo=UTC)
    assert partition_at(moment, Grain.NONE, NEW_YORK) == EVERYTHING
    assert list(partitions_within(Interval(moment, FOREVER), Grain.NONE, NEW_YORK)) == [EVERYTHING]
    assert partition_named("", Grain.NONE, NEW_YORK) == EVERYTHING


def test_a_wrong_name_is_refused_with_the_form_wanted() -> None:
    with pytest.raises(
        ValueError, match=r"'16.11.2026' is not the name of a partition by day: expected the form %Y-%m-%d"
    ):
        partition_named("16.11.2026", Grain.DAY, NEW_YORK)
