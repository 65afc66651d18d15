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

from ingestion.domain.column_types import SIMPLE_TYPES
from ingestion.domain.schema import Schema
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


@pytest.mark.parametrize("name", ["10:20", "a\0b", "n" * 252, "ü" * 126])
def test_one_name_that_no_folder_has_does_not_stop_the_others(name: str) -> None:
    columns = {"day": ["2026-11-16", name, "n" * 251, "a\nb =%41"]}
    batch = fitted(columns, {"day": "string"}, required=("day",), partition_column="day")
    assert batch.rows["day"].to_pylist() == [columns["day"][place] for place in (0, 2, 3)]
    assert [each.column for each in batch.rejected] == ["day"]


def test_two_keys_never_have_one_text() -> None:
    """Hudi writes `a:1,b:2`. Of two rows with the same text at most one may stay, and which one does not depend on the other."""
    columns = {"a": ["1,b:2", "1", "1,b", ",b:", "1,c:2"], "b": ["3", "2,b:3", ":2,b:3", "", ",a:1"]}
    batch = fitted(columns, {"a": "string", "b": "string"}, required=("a", "b"), record_key=("a", "b"))
    texts = [f"a:{row['a']},b:{row['b']}" for row in batch.rows.to_pylist()]
    assert len(set(texts)) == len(texts) == 3
    assert [row.column for row in batch.rejected] == ["a", "b"]
    assert batch.rejected[0].reason == "`a` has the text `,b:` in it, which separates the columns of a key"


@given(st.lists(st.tuples(*[st.text("a,b:c1", max_size=9)] * 3), unique=True, min_size=2))
def test_whatever_keys_come_those_that_stay_have_a_text_of_their_own(keys: list[tuple[str, str, str]]) -> None:
    columns = dict(zip("abc", map(list, zip(*keys, strict=True)), strict=True))
    rows = fitted(columns, dict.fromkeys("abc", "string"), record_key=("a", "b", "c")).rows.to_pylist()
    texts = [",".join(f"{name}:{value}" for name, value in row.items()) for row in rows]
    assert len(set(texts)) == len(texts)


def test_an_empty_text_is_no_whole_key() -> None:
    """Hudi refuses the batch for it; of a key of several columns one may be empty."""
    columns, types = {"id": ["", "a"], "part": ["", "b"]}, {"id": "string", "part": "string"}
    batch = fitted(columns, types, required=("id",), record_key=("id",))
    assert batch.rows["id"].to_pylist() == ["a"]
    assert batch.rejected[0].reason == "`id` is an empty text, but it is the whole key"
    assert not fitted(columns, types, required=("id", "part")).rejected


def test_an_empty_text_is_no_part_of_a_key_without_partitions() -> None:
    """Hudi refused the load for it, and a batch stored another key."""
    columns, types = {"id": ["", "a"], "part": ["b", "b"]}, {"id": "string", "part": "string"}
    whole = fitted(columns, types, record_key=("id", "part"))
    assert [row.reason for row in whole.rejected] == [
        "`id` is an empty text, but it is a part of the key of a table without partitions"
    ]
    assert not fitted(columns, types, record_key=("id", "part"), partition_column="part").rejected


def test_what_stands_for_a_missing_part_of_a_key_is_no_part_of_one() -> None:
    """An empty text was written alike, and one of the two rows was lost."""
    columns, types = {"a": ["", "__empty__", "__null__"], "p": ["x", "x", "x"]}, {"a": "string", "p": "string"}
    batch = fitted(columns, types, record_key=("a", "p"), partition_column="p")
    assert batch.rows["a"].to_pylist() == [""]
    assert batch.rejected[0].reason == "`a` is '__empty__', which stands for a missing part of a key"
    assert len(fitted(columns, types, record_key=("a",), partition_column="p").rejected) == 1, "the empty one"


def test_a_field_that_nobody_knows_is_not_dropped_in_silence() -> None:
    batch = fitted({"id": [1, 2], "extra": [None, "x"]}, {"id": "long"})
    assert batch.rows["id"].to_pylist() == [1]
    assert batch.rejected[0].reason == "`extra` is no column of the source's schema"


@pytest.mark.parametrize("name", ["a-b", "_hoodie_commit_time", "ID"])
def test_a_column_whose_name_the_lake_cannot_hold_is_rejected_with_the_reason(name: str) -> None:
    batch = fit_rows(Chunk({"id": [1, 2], name: [None, 7]}), FitRules(Schema.of({"id": "long"})))
    assert batch.rows["id"].to_pylist() == [1]
    assert [row.reason for row in batch.rejected] == [
        f"the lake cannot hold the name `{name}`, so `{name}` is no column of the source's schema"
    ]


def test_what_is_no_row_is_told_too() -> None:
    chunk = Chunk({"id": [1]}, (UnreadableRow("{oops", "not JSON"),))
    assert fit_rows(chunk, FitRules(Schema.of({"id": "long"}))).rejected[0].raw == "{oops"


def test_arrow_columns_are_taken_as_they_are() -> None:
    batch = fitted({"a": pa.array([1, 2], pa.int32())}, {"a": "long", "gone": "string"})
    assert batch.rows.to_pydict() == {"a": [1, 2], "gone": [None, None]}


def fitted(columns: dict[str, Any], types: dict[str, str], **rules: Any) -> Any:
    return fit_rows(Chunk(columns), FitRules(Schema.of(types), **rules))


@pytest.mark.parametrize(("letters", "kept"), [(15_000, 1), (15_001, 0)])
def test_a_record_key_that_the_index_cannot_hold_is_rejected(letters: int, kept: int) -> None:
    """The bytes of all its columns count."""
    columns, types = {"id": ["é" * 7_500], "part": ["x" * letters]}, {"id": "string", "part": "string"}
    batch = fitted(columns, types, record_key=("id", "part"))
    assert batch.rows.num_rows == kept
    assert [row.column for row in batch.rejected] == ["id"] * (1 - kept)
