"""Rows fit a schema or are told apart with the reason; whole columns and single values are judged alike."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ingestion.domain.schema import SIMPLE_TYPES, Schema
from ingestion.sources import Chunk, UnreadableRow
from ingestion.spark.loading.fitting import FitRules, fit_rows
from tests.text_strategies import any_text

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
VALUES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | any_text(5)


@pytest.mark.parametrize(
    ("type_", "value", "stored"),
    [
        ("long", "42", 42),
        ("int", 7, 7),
        ("double", 3, 3.0),
        ("boolean", 1, True),
        ("boolean", "false", False),
        ("string", 5, "5"),
        ("string", {"b": 1, "a": [2]}, '{"a": [2], "b": 1}'),
        ("date", "2026-11-16", date(2026, 11, 16)),
        ("decimal(10,2)", "1.25", Decimal("1.25")),
        ("decimal(12,2)", 300, Decimal("300.00")),
        ("decimal(12,2)", -9_999_999_999, Decimal("-9999999999.00")),
        ("decimal(12,2)", 12.5, Decimal("12.50")),
        ("decimal(12,2)", 0.1 + 0.2, Decimal("0.30")),
        ("decimal(12,2)", "300", Decimal("300.00")),
        ("decimal(12,2)", "1e3", Decimal("1000.00")),
        ("decimal(12,2)", Decimal("12.500"), Decimal("12.50")),
        ("decimal(38,0)", 10**37, Decimal(10**37)),
        ("decimal(16,0)", 2.0**53, Decimal(2**53)),
        ("timestamp", "2026-11-16 12:00:00", NOON),
        ("timestamp", "2026-11-16T13:00:00+01:00", NOON),
        ("timestamp", datetime(2026, 11, 16, 12), NOON),
        ("timestamp", date(2026, 11, 16), NOON.replace(hour=0)),
        ("binary", b"\x00", b"\x00"),
    ],
)
def test_values_that_fit(type_: str, value: object, stored: object) -> None:
    assert fitted({"a": [value]}, {"a": type_}).rows["a"].to_pylist() == [stored]


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("long", "4x"),
        ("long", 1.5),
        ("int", 2**40),
        ("double", "much"),
        ("boolean", 2),
        ("boolean", 0.5),
        ("date", 20261116),
        ("decimal(12,2)", 10**10),
        ("decimal(12,2)", 0.125),
        ("decimal(12,2)", "12.555"),
        ("decimal(38,37)", str(2**62)),
        ("decimal(12,2)", "1_000"),
        ("decimal(12,2)", True),
        ("timestamp", 1763294400),
        ("timestamp", "noon"),
    ],
)
def test_a_value_that_does_not_fit_is_named(type_: str, value: object) -> None:
    batch = fitted({"id": [1, 2], "a": [None, value]}, {"id": "long", "a": type_})
    assert batch.rows["id"].to_pylist() == [1]
    (misfit,) = batch.rejected
    assert misfit.column == "a"
    assert misfit.reason == f"`a` is {json.dumps(value)} ({type(value).__name__}), which is no {type_}"
    assert json.loads(misfit.raw) == {"id": 2, "a": value}


@given(st.lists(VALUES, max_size=6), st.sampled_from((*SIMPLE_TYPES, "decimal(12,2)", "decimal(38,0)")))
@example([-1, 0.0], "boolean")
@example([0.0, False], "string")
def test_a_row_fits_beside_others_as_it_fits_alone(values: list[Any], type_: str) -> None:
    together = fitted({"id": range(len(values)), "a": values}, {"id": "long", "a": type_}).rows
    alone = [fitted({"a": [value]}, {"a": type_}).rows["a"].to_pylist() for value in values]
    assert together["id"].to_pylist() == [place for place, rows in enumerate(alone) if rows]
    assert together["a"].to_pylist() == [row for rows in alone for row in rows]


@pytest.mark.parametrize("values", [[1, 2], [1.5, 2.0], ["1.50", "2"], [1, 2.5], [1, Decimal("2.5"), "3", None]])
def test_all_rows_of_a_decimal_column_are_stored(values: list[Any]) -> None:
    """SQLite hands over the column's whole numbers as integers and the others as floats: 242 of 300 rows were lost."""
    columns: list[Any] = [values]
    if len(set(map(type, values))) == 1:
        columns += [pa.array(values), pa.chunked_array([values])]
    for column in columns:
        batch = fitted({"a": column}, {"a": "decimal(12,2)"})
        assert batch.rows["a"].to_pylist() == [None if each is None else Decimal(str(each)) for each in values]
        assert not batch.rejected


@given(st.integers(-(10**10) + 1, 10**10 - 1), st.integers(0, 99))
def test_a_decimal_survives_being_a_float_or_a_text(whole: int, cents: int) -> None:
    value = Decimal(f"{whole}.{cents:02}")
    assert fitted({"a": [float(value), str(value)]}, {"a": "decimal(12,2)"}).rows["a"].to_pylist() == [value, value]


@given(st.lists(st.tuples(VALUES, VALUES), max_size=6))
def test_every_row_is_either_kept_or_told(rows: list[tuple[Any, Any]]) -> None:
    columns = {"a": [row[0] for row in rows], "b": [row[1] for row in rows]}
    batch = fitted(columns, {"a": "long", "b": "string"}, required=("a",))
    assert batch.rows.num_rows + len(batch.rejected) == len(rows)


def test_a_key_is_not_null_and_a_partition_names_a_folder() -> None:
    columns = {"id": [1, None, 3, 4], "day": ["a", "b", "", "x/y"]}
    batch = fitted(columns, {"id": "long", "day": "string"}, required=("id", "day"), partition_column="day")
    assert batch.rows["id"].to_pylist() == [1]
    assert [(each.column, each.reason.split(":")[0]) for each in batch.rejected] == [
        ("id", "`id` is null, but it is a key"),
        ("day", "`day` is ''"),
        ("day", "`day` is 'x/y'"),
    ]


def test_a_field_that_nobody_knows_is_not_dropped_in_silence() -> None:
    batch = fitted({"id": [1, 2], "extra": [None, "x"]}, {"id": "long"})
    assert batch.rows["id"].to_pylist() == [1]
    assert batch.rejected[0].reason == "`extra` is no column of the source's schema"


def test_what_is_no_row_is_told_too() -> None:
    chunk = Chunk({"id": [1]}, (UnreadableRow("{oops", "not JSON"),))
    assert fit_rows(chunk, FitRules(Schema.of({"id": "long"}))).rejected[0].raw == "{oops"


def test_arrow_columns_are_taken_as_they_are() -> None:
    batch = fitted({"a": pa.array([1, 2], pa.int32())}, {"a": "long", "gone": "string"})
    assert batch.rows.to_pydict() == {"a": [1, 2], "gone": [None, None]}


def fitted(columns: dict[str, Any], types: dict[str, str], **rules: Any) -> Any:
    return fit_rows(Chunk(columns), FitRules(Schema.of(types), **rules))
