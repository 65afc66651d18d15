"""What a partition column says by its values: proposed, shown by example, or refused with the remedy."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from lakehub.catalog.metadata import ColumnMetadata, ColumnType, NewestValues, TableMetadata
from lakehub.catalog.onboarding.partition_proposal import (
    PartitionProposal,
    form_by_types,
    newest_meaning,
    partition_problem,
    propose_partition,
    sample_problem,
)
from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.form import partition_form

BERLIN = ZoneInfo("Europe/Berlin")
DAYS = [date(2026, 1, day) for day in range(1, 17)]


def table(**kinds: ColumnType) -> TableMetadata:
    return TableMetadata(tuple(ColumnMetadata(name, kind) for name, kind in kinds.items()))


def proposed(kind: ColumnType, values: list[Any]) -> tuple[str, str] | None:
    proposal = propose_partition(table(c=kind), "c", [(value,) for value in values], BERLIN)
    return (proposal.grain.value, proposal.form) if isinstance(proposal, PartitionProposal) else None


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (ColumnType.STRING, [f"{day:%Y-%m-%d}" for day in DAYS], ("day", "")),
        (ColumnType.STRING, [f"{day:%d.%m.%Y}" for day in DAYS], ("day", "%d.%m.%Y")),
        (ColumnType.STRING, [f"{day:%m/%d/%Y}" for day in DAYS], ("day", "%m/%d/%Y")),
        (ColumnType.STRING, [f"{day:%d/%m/%Y}" for day in DAYS], ("day", "%d/%m/%Y")),
        (ColumnType.STRING, [f"{day:%Y-%m-%d}T07" for day in DAYS], ("hour", "")),
        (ColumnType.STRING, ["2026-Q1", "2026-Q2"], ("quarter", "")),
        (ColumnType.STRING, ["2026-W03"], ("week", "")),
        (ColumnType.STRING, ["garbage", *[f"{day:%Y%m%d}" for day in DAYS]], ("day", "%Y%m%d")),
        (ColumnType.INTEGER, [20260116], ("day", "%Y%m%d")),
        (ColumnType.INTEGER, [2026011607, 2026011608], ("hour", "%Y%m%d%H")),
        (ColumnType.INTEGER, [202601, 202602], ("month", "%Y%m")),
        (ColumnType.INTEGER, [2024, 2025], ("year", "")),
        (ColumnType.INTEGER, [20260101, 20260201, 20260301], ("month", "%Y%m%d")),
        (ColumnType.STRING, ["05.01.2026", "12.01.2026", "19.01.2026"], ("week", "%d.%m.%Y")),
        (ColumnType.DATE, DAYS, ("day", "time")),
        (ColumnType.DATE, [date(2026, month, 1) for month in range(1, 7)], ("month", "time")),
        (ColumnType.TIMESTAMP, [datetime(2026, 1, 1, 0, 1)], ("day", "time")),
        (ColumnType.TIMESTAMP, [], ("day", "time")),
        (ColumnType.INTEGER, [1, 2, 3], None),
        (ColumnType.INTEGER, [], None),
        (ColumnType.STRING, ["north", "south"], None),
        (ColumnType.FLOAT, [20260116.0], None),
    ],
)
def test_grain_and_form_are_read_off_type_and_values(
    kind: ColumnType, values: list[Any], expected: tuple[str, str] | None
) -> None:
    assert proposed(kind, values) == expected


@pytest.mark.parametrize(
    ("grain", "form", "value", "meaning"),
    [
        (Grain.DAY, "%Y%m%d", 20260116, "20260116 = 16 January 2026, Europe/Berlin"),
        (Grain.DAY, "time", datetime(2026, 1, 15, 23, 30, tzinfo=UTC), "16 January 2026, Europe/Berlin"),
        (Grain.DAY, "time", datetime(2026, 1, 15, 23, 30), "15 January 2026, Europe/Berlin"),
        (Grain.HOUR, "", "2026-01-16T07", "16 January 2026, 07:00, Europe/Berlin"),
        (Grain.WEEK, "%Y%m%d", "20260112", "the week from 12 January 2026, Europe/Berlin"),
        (Grain.QUARTER, "", "2026-Q1", "Q1 2026, Europe/Berlin"),
    ],
)
def test_the_newest_value_is_shown_with_what_it_means(grain: Grain, form: str, value: object, meaning: str) -> None:
    assert newest_meaning(partition_form("c", grain, BERLIN, form), NewestValues([("garbage",), (value,)])).endswith(
        meaning
    )


def test_numbers_in_several_columns_have_no_zero_in_front() -> None:
    columns = table(year=ColumnType.INTEGER, month=ColumnType.INTEGER, day=ColumnType.STRING)
    assert form_by_types(columns, "year, month, day", Grain.DAY, "%Y,%m,%d") == "%Y, %-m, %d"


def test_a_sample_of_which_nothing_is_a_partition_is_refused_with_an_example() -> None:
    form = partition_form("c", Grain.DAY, BERLIN, "%d.%m.%Y")
    assert sample_problem(form, NewestValues([("20260116",)])) == (
        "None of the 1 values looked at says a day, such as '20260116'. Expected were values such as '16.01.2026'. "
        "Write how they say it, such as %Y%m%d, or choose another grain or column."
    )
    assert sample_problem(form, NewestValues([("20260116",), ("16.01.2026",)])) == ""
    assert sample_problem(form, NewestValues([])) == ""
    assert len(sample_problem(form, NewestValues([("x" * 5_000_000,)]))) < 500


@pytest.mark.parametrize(
    ("kind", "grain", "form", "problem"),
    [
        (ColumnType.STRING, Grain.DAY, "time", "holds no times: write a pattern such as %Y%m%d"),
        (ColumnType.TIMESTAMP, Grain.DAY, "%Y%m%d", "write the form `time`"),
        (ColumnType.DATE, Grain.DAY, "epoch days", "write the form `time`"),
        (ColumnType.DATE, Grain.HOUR, "time", "which says no hours. Choose the grain day"),
        (ColumnType.STRING, Grain.DAY, "epoch days", "are whole numbers"),
        (ColumnType.BOOLEAN, Grain.DAY, "", "says no partition. Choose a column of text"),
        (ColumnType.DECIMAL, Grain.DAY, "%Y%m%d", ""),
    ],
)
def test_types_that_cannot_say_a_partition_are_named(kind: ColumnType, grain: Grain, form: str, problem: str) -> None:
    reason = partition_problem(table(c=kind), partition_form("c", grain, BERLIN, form))
    assert problem in reason
    assert bool(reason) == bool(problem)


def test_days_that_are_all_mondays_are_weeks_only_where_there_are_some() -> None:
    monday = date(2026, 1, 12)
    assert proposed(ColumnType.DATE, [monday]) == ("day", "time")
    assert proposed(ColumnType.DATE, [monday + timedelta(weeks=week) for week in range(3)]) == ("week", "time")
