"""The partition of each row as a batch is made to fit: the same as the calendar says of each value alone."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.sources import Chunk
from ingestion.spark.loading.fitting import FitResult, FitRules, fit_rows
from lakehub.kernel.partitions import Grain, partition_at, partition_name
from lakehub.kernel.partitions.form import PartitionForm, partition_form
from tests.unit.kernel.test_partitions import grains, instants, zones

TARGET = "_lakehub_partition"
NEW_YORK = ZoneInfo("America/New_York")


def fitted(
    columns: dict[str, Any], types: dict[str, str], form: PartitionForm, only: frozenset[str] | None = None
) -> FitResult:
    schema = Schema(tuple(SchemaColumn(name, type_) for name, type_ in {**types, TARGET: "string"}.items()))
    return fit_rows(Chunk(columns), FitRules(schema, (TARGET,), TARGET, form, only))


def names(columns: dict[str, Any], types: dict[str, str], form: PartitionForm) -> list[str]:
    partitions: list[str] = fitted(columns, types, form).rows[TARGET].to_pylist()
    return partitions


@given(st.lists(instants, min_size=1, max_size=8), zones, grains)
def test_each_instant_is_in_the_partition_that_holds_it(times: list[datetime], zone: ZoneInfo, grain: Grain) -> None:
    form = partition_form("at", grain, zone, "time")
    expected = [partition_name(partition_at(time, grain, zone), grain, zone) for time in times]
    assert names({"at": times}, {"at": "timestamp"}, form) == expected
    assert names({"at": pa.array(times, pa.timestamp("us", "UTC"))}, {"at": "timestamp"}, form) == expected


@pytest.mark.parametrize(
    ("values", "form", "name"),
    [
        (datetime(2026, 11, 1, 3, tzinfo=UTC), "time", "2026-10-31"),
        ("2026-11-01T03:00:00+00:00", "time", "2026-10-31"),
        (datetime(2026, 11, 1, 3), "time", "2026-11-01"),
        ("2026-11-01 03:00:00", "time", "2026-11-01"),
        (datetime(2026, 11, 1, 3), "time in UTC", "2026-10-31"),
    ],
)
def test_a_time_without_a_zone_is_of_the_datasets(values: object, form: str, name: str) -> None:
    assert names({"at": [values]}, {"at": "timestamp"}, partition_form("at", Grain.DAY, NEW_YORK, form)) == [name]


@pytest.mark.parametrize("as_arrow", [False, True])
def test_each_time_says_by_itself_whether_it_has_a_zone(as_arrow: bool) -> None:
    """The first of a chunk spoke for all: the same row was in another partition when it came alone."""
    times = [None, "unknown", "2026-11-01 03:00:00", "2026-11-01T03:00:00Z", "2026-11-01 03:00:00"]
    form = partition_form("at", Grain.DAY, NEW_YORK, "time")
    result = fitted({"at": pa.array(times) if as_arrow else times}, {"at": "timestamp"}, form)
    assert result.rows[TARGET].to_pylist() == ["2026-11-01", "2026-10-31", "2026-11-01"]
    reasons = ["`at` is null, which is no day", '`at` is "unknown" (str), which is no timestamp']
    assert [row.reason for row in result.rejected] == reasons


def test_a_text_that_reads_none_is_not_called_null() -> None:
    result = fitted({"ds": ["None", None]}, {"ds": "string"}, partition_form("ds", Grain.DAY, NEW_YORK, "%Y-%m-%d"))
    assert [row.reason for row in result.rejected] == [
        "`ds` is 'None', which is no day",
        "`ds` is null, which is no day",
    ]


def test_dates_numbers_and_several_columns_say_a_partition() -> None:
    month = partition_form("day", Grain.MONTH, NEW_YORK, "time")
    assert names({"day": [date(2026, 11, 17)]}, {"day": "date"}, month) == ["2026-11"]
    days = partition_form("ds", Grain.DAY, NEW_YORK, "%Y%m%d")
    assert names({"ds": [20261117]}, {"ds": "long"}, days) == ["2026-11-17"]
    hours = partition_form("ds, hr", Grain.HOUR, NEW_YORK, "%Y%m%d, %-H")
    columns = {"ds": ["20261117"], "hr": [7]}
    assert names(columns, {"ds": "string", "hr": "int"}, hours) == ["2026-11-17T07"]


def test_what_is_no_partition_is_an_error_with_the_reason_and_is_counted_by_value() -> None:
    form = partition_form("ds", Grain.DAY, NEW_YORK, "%Y%m%d")
    result = fitted({"ds": ["20261117", "garbage", None, "garbage", ""]}, {"ds": "string"}, form)
    assert result.rows[TARGET].to_pylist() == ["2026-11-17"]
    assert result.misplaced == {"garbage": 2, "None": 1, "": 1}
    assert result.rejected[0].reason == "`ds` is 'garbage', which is no day"


def test_an_hour_that_the_clocks_left_out_is_an_error() -> None:
    form = partition_form("at", Grain.HOUR, NEW_YORK, "time")
    times = [datetime(2026, 3, 8, 1, 30), None, datetime(2026, 3, 8, 2, 30), datetime(2026, 3, 8, 3, 30)]
    result = fitted({"at": times}, {"at": "timestamp"}, form)
    assert result.rows[TARGET].to_pylist() == ["2026-03-08T01", "2026-03-08T03"]
    assert len(result.rejected) == 2


def test_a_time_before_all_partitions_is_an_error() -> None:
    form = partition_form("at", Grain.YEAR, NEW_YORK, "time")
    result = fitted({"at": [datetime(1850, 1, 1), datetime(1, 1, 1), datetime(2026, 1, 1)]}, {"at": "timestamp"}, form)
    assert (result.rows[TARGET].to_pylist(), len(result.rejected)) == (["2026"], 2)


def test_of_a_backfill_only_the_partitions_that_are_wanted_are_read() -> None:
    form = partition_form("at", Grain.DAY, NEW_YORK, "time")
    times = [datetime(2026, 11, day, 12) for day in (14, 15, 16)]
    result = fitted({"at": [*times, None]}, {"at": "timestamp"}, form, frozenset({"2026-11-15"}))
    assert (result.rows[TARGET].to_pylist(), result.rejected, result.skipped) == (["2026-11-15"], (), 3)
