"""How tables say which partition a row belongs to: read strictly, written back the same, and cut in the column's own terms."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, partition_at, partition_name
from lakehub.kernel.partitions.form import (
    BadPartitionForm,
    Equals,
    Within,
    is_too_far_ahead,
    partition_form,
)
from tests.unit.kernel.test_partitions import instants, zones

BERLIN = ZoneInfo("Europe/Berlin")
NAMED = [
    (Grain.HOUR, "h", ""),
    (Grain.HOUR, "h", "epoch seconds"),
    (Grain.DAY, "d", "%Y%m%d"),
    (Grain.DAY, "d", "%d.%m.%Y"),
    (Grain.DAY, "d", "%-d-%b-%y"),
    (Grain.DAY, "d", "%Y/%j"),
    (Grain.DAY, "d", "epoch days"),
    (Grain.DAY, "year, month, day", "%Y, %-m, %-d"),
    (Grain.WEEK, "w", "%G%V"),
    (Grain.WEEK, "w", "%Y-%m-%d"),
    (Grain.MONTH, "m", "%Y%m"),
    (Grain.MONTH, "m", "%B %Y"),
    (Grain.QUARTER, "q", "%YQ%q"),
    (Grain.QUARTER, "q", "epoch milliseconds"),
    (Grain.YEAR, "y", "%Y"),
]


@given(instants, zones, st.sampled_from(NAMED))
def test_what_a_form_writes_it_reads_back(
    instant: datetime, zone: ZoneInfo, given_form: tuple[Grain, str, str]
) -> None:
    grain, columns, text = given_form
    form = partition_form(columns, grain, zone, text)
    partition = partition_at(instant, grain, zone)
    assert form.parse(form.value_of(partition)) == partition
    conditions = form.conditions(partition)
    assert "/".join(condition.value for condition in conditions if isinstance(condition, Equals)) == form.value_of(
        partition
    )


@pytest.mark.parametrize("raw", ["20260132", "2026-01-16", "20260116 ", "20260116\n", "", "garbage", "٢٠٢٦٠١١٦"])
def test_a_value_that_is_not_of_the_form_is_refused_and_kept_as_it_is(raw: str) -> None:
    form = partition_form("ds", Grain.DAY, BERLIN, "%Y%m%d")
    with pytest.raises(ValueError, match="is not"):
        form.parse(raw)
    assert form.name_of(raw) == (repr(raw) if raw == "2026-01-16" else raw)


def test_a_missing_value_and_the_name_that_hive_gives_it_are_no_partition() -> None:
    form = partition_form("ds", Grain.DAY, BERLIN)
    assert form.name_of(None) is None
    assert form.name_of("__HIVE_DEFAULT_PARTITION__") == "__HIVE_DEFAULT_PARTITION__"


def test_a_day_that_does_not_start_its_week_is_no_week() -> None:
    form = partition_form("ds", Grain.WEEK, BERLIN, "%Y%m%d")
    assert form.name_of("20260112") == "2026-W03"
    with pytest.raises(ValueError, match="'20260113' is not how '20260112' is written, the week that it lies in"):
        form.parse("20260113")


@given(instants, zones, st.sampled_from([grain for grain in Grain if grain is not Grain.NONE]))
def test_a_time_lies_in_the_range_of_its_own_partition_only(instant: datetime, zone: ZoneInfo, grain: Grain) -> None:
    form = partition_form("at", grain, zone, "time")
    here = partition_at(instant, grain, zone)
    for partition in (
        partition_at(here.start - timedelta(microseconds=1), grain, zone),
        here,
        partition_at(here.end, grain, zone),
    ):
        (within,) = form.conditions(partition)
        assert isinstance(within, Within)
        assert (within.start <= instant < within.end) == (partition == here)


def test_a_local_time_is_cut_on_the_clock_of_the_zone_and_one_in_utc_is_not() -> None:
    day = partition_at(datetime(2026, 3, 29, 12, tzinfo=UTC), Grain.DAY, BERLIN)
    (local,) = partition_form("at", Grain.DAY, BERLIN, "time").conditions(day)
    (in_utc,) = partition_form("at", Grain.DAY, BERLIN, "time in UTC").conditions(day)
    assert isinstance(local, Within)
    assert isinstance(in_utc, Within)
    assert (local.local_start, local.local_end) == (datetime(2026, 3, 29), datetime(2026, 3, 30))
    assert (in_utc.local_start, in_utc.local_end) == (datetime(2026, 3, 28, 23), datetime(2026, 3, 29, 22))


def test_a_time_that_was_cut_by_an_engine_leads_to_its_partition() -> None:
    hours = partition_form("at", Grain.HOUR, BERLIN, "time")
    assert hours.name_of("2026-10-25 02@7200") == "2026-10-25T02"
    assert hours.name_of("2026-10-25 02@3600") == "2026-10-25T02+0100"
    assert hours.name_of("2026-03-29 02") == "2026-03-29 02"  # the clocks were put forward over it
    months = partition_form("at", Grain.MONTH, BERLIN, "time")
    assert months.name_of("2026-01-01 00") == "2026-01"
    assert months.name_of("0001-01-01 00") == "0001-01-01 00"
    assert months.name_of("infinity") == "infinity"


@pytest.mark.parametrize(
    ("columns", "grain", "text", "problem"),
    [
        ("ds", Grain.DAY, "%Y%m", "does not say which day it is: it says month, year only"),
        ("ds", Grain.HOUR, "%Y%m%d", "does not say which hour it is"),
        ("ds", Grain.DAY, "YYYYMMDD", "'YYYYMMDD' is not a form of a partition. Write a pattern such as %Y%m%d"),
        ("ds", Grain.DAY, "%Y%x", "'%x' in the pattern '%Y%x' is not understood. Write %Y"),
        ("ds", Grain.DAY, "%Y%m%d%", "is not understood"),
        ("ds", Grain.DAY, "%Y%m%d%Y", "says the year twice"),
        ("ds", Grain.DAY, "%Y%-m%-d", "may be read in several ways"),
        ("ds", Grain.DAY, "%Y-%-m1%-d", "may be read in several ways"),
        ("ds, hr", Grain.HOUR, "", "write a pattern for each, with commas between"),
        ("ds, hr", Grain.HOUR, "%Y%m%d%H", "has 1 patterns for 2 columns"),
        ("ds", Grain.HOUR, "epoch days", "Days since 1970 say no hours"),
        ("", Grain.DAY, "", "has no partitions"),
    ],
)
def test_a_form_that_cannot_be_read_is_refused_with_the_remedy(
    columns: str, grain: Grain, text: str, problem: str
) -> None:
    with pytest.raises(BadPartitionForm) as refused:
        partition_form(columns, grain, BERLIN, text)
    assert problem in str(refused.value)


def test_rows_of_the_next_partition_are_not_ahead_and_those_behind_it_are() -> None:
    now = datetime(2026, 1, 16, 12, tzinfo=UTC)
    ahead = [
        partition_name(partition, Grain.DAY, BERLIN)
        for days in range(4)
        if is_too_far_ahead(
            partition := partition_at(now + timedelta(days=days), Grain.DAY, BERLIN), Grain.DAY, BERLIN, now=now
        )
    ]
    assert ahead == ["2026-01-18", "2026-01-19"]


def test_the_two_hours_that_a_local_clock_shows_alike_are_read_alike() -> None:
    form = partition_form("ds, hr", Grain.HOUR, BERLIN, "%Y%m%d, %H")
    first, second = (
        Interval(datetime(2026, 10, 25, hour, tzinfo=UTC), datetime(2026, 10, 25, hour + 1, tzinfo=UTC))
        for hour in (0, 1)
    )
    assert form.conditions(first) == form.conditions(second) == (Equals("ds", "20261025"), Equals("hr", "02"))
    assert form.parse("20261025/02") == first


@pytest.mark.parametrize("text", ["%-Y%m%d", "%-m%d%Y", "%Y/%-m/%-d", "%-d%b%-y"])
def test_numbers_of_any_length_that_can_be_told_apart_are_understood(text: str) -> None:
    form = partition_form("ds", Grain.DAY, BERLIN, text)
    for day in ("2026-01-11", "2026-11-01"):
        assert form.name_of(form.value_of(form_named(day))) == day


def form_named(day: str) -> Interval:
    return partition_form("ds", Grain.DAY, BERLIN).parse(day)


def test_a_long_value_is_read_at_once_whatever_the_form() -> None:
    """Fields of any length side by side would be tried in every way to cut the value."""
    form = partition_form("ds", Grain.HOUR, BERLIN, "%-Y%-m%d%H")
    began = time.perf_counter()
    for value in ("1" * 5_000_000, "1" * 50_000 + "x", "1." * 2_000_000):
        assert form.name_of(value) == value
    assert time.perf_counter() - began < 1
