"""Partitions in SQL: bounds and values of the column's own type, so that indexes serve; what cannot be said is refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.form import PartitionForm, partition_form
from quality.engines.backends.database_dialects import _standard
from quality.engines.scans.column_types import ColumnType
from quality.engines.scans.parts import CannotRead, EachPartition, OnePartition
from quality.engines.sql.partition_filter import partition_group, partition_where

BERLIN = ZoneInfo("Europe/Berlin")
STANDARD = _standard('"{}"'.format)


def where(form: PartitionForm, name: str, *also: str, **kinds: ColumnType) -> tuple[str, list[object]]:
    text, bound = partition_where(OnePartition(form.columns[0], name, form, also), STANDARD, kinds)
    return text, list(bound.values())


def form(columns: str, text: str, grain: Grain = Grain.DAY) -> PartitionForm:
    return partition_form(columns, grain, BERLIN, text)


def test_times_are_half_open_ranges_in_the_columns_own_terms() -> None:
    expected = 'scanned."at" >= :part AND scanned."at" < :part1'
    day = form("at", "time")
    start, end = datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 3, 29, 22, tzinfo=UTC)
    assert where(day, "2026-03-29", at=ColumnType.INSTANT) == (expected, [start, end])
    local = [datetime(2026, 3, 29), datetime(2026, 3, 30)]
    assert where(day, "2026-03-29", at=ColumnType.LOCAL) == (expected, local)
    assert where(day, "2026-03-29", at=ColumnType.DATE) == (expected, [date(2026, 3, 29), date(2026, 3, 30)])


def test_names_and_numbers_are_equal_to_a_value_and_several_columns_to_one_each() -> None:
    assert where(form("ds", "%Y%m%d"), "2026-03-29", ds=ColumnType.INTEGER) == ('scanned."ds" = :part', [20260329])
    hour = form("ds, hr", "%Y%m%d, %H", Grain.HOUR)
    both = where(hour, "2026-03-29T07", ds=ColumnType.TEXT, hr=ColumnType.INTEGER)
    assert both == ('scanned."ds" = :part AND scanned."hr" = :part1', ["20260329", 7])


def test_several_partitions_are_a_list_of_values_or_alternatives() -> None:
    text, bound = where(form("ds", "%Y%m%d"), "2026-03-29", "2026-03-30", ds=ColumnType.TEXT)
    assert (text, bound) == ('scanned."ds" IN (:part, :part1)', ["20260329", "20260330"])
    hours = form("ds, hr", "%Y%m%d, %H", Grain.HOUR)
    text, bound = where(hours, "2026-03-29T07", "2026-03-30T08", ds=ColumnType.TEXT, hr=ColumnType.INTEGER)
    assert text == (
        '(scanned."ds" = :part AND scanned."hr" = :part1) OR (scanned."ds" = :part2 AND scanned."hr" = :part3)'
    )
    assert bound == ["20260329", 7, "20260330", 8]


def test_a_database_that_cannot_cut_times_is_refused_with_the_remedy() -> None:
    each = EachPartition("at", form("at", "time"))
    with pytest.raises(
        CannotRead, match=r"cannot cut `at` to the day in Europe/Berlin. Add a column with the partition"
    ):
        partition_group(each, STANDARD, {"at": ColumnType.INSTANT})


def test_a_value_that_the_column_cannot_hold_is_refused_by_name() -> None:
    with pytest.raises(CannotRead, match=r"'29.03.2026' cannot be a value of the partition column `ds`: integer"):
        where(form("ds", "%d.%m.%Y"), "2026-03-29", ds=ColumnType.INTEGER)


@pytest.mark.parametrize(
    ("of", "hours"),
    [(form("ds", "%Y%m%d%H", Grain.HOUR), 8_760), (form("ds, hr", "%Y%m%d, %H", Grain.HOUR), 1_500)],
    ids=["values", "alternatives"],
)
def test_many_hours_are_read_of_a_table_that_is_cut_by_hours(of: PartitionForm, hours: int) -> None:
    """SQLite takes no expression that is deeper than 1,000, and a year has 8,760 hours."""
    names = [f"{datetime(2026, 1, 1) + timedelta(hours=number):%Y-%m-%dT%H}" for number in range(hours)]
    names = [name for name in names if name != "2026-03-29T02"]  # the clocks were put forward over it
    text, bound = partition_where(
        OnePartition(of.columns[0], names[0], of, tuple(names[1:])),
        STANDARD,
        dict.fromkeys(of.columns, ColumnType.TEXT),
    )
    last = names[-1]
    day, hour = last[:10].replace("-", ""), last[11:]
    inside = [(f"{day}{hour}", ""), ("2026010100", "")] if len(of.columns) == 1 else [(day, hour), ("20260101", "00")]
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE scanned (ds TEXT, hr TEXT)")
        database.executemany("INSERT INTO scanned VALUES (?, ?)", [*inside, ("2027010100", ""), ("20270101", "00")])
        (count,) = database.execute(f"SELECT COUNT(*) FROM scanned WHERE {text}", bound).fetchone()
    assert count == 2
