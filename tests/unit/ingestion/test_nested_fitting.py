"""Structures, lists and maps are made to fit field by field, whether Python or Arrow hands them over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.column_types import ArrayOf, ColumnType, MapOf, Plain, StructOf, parse_type
from ingestion.domain.schema import Schema
from ingestion.sources import Chunk
from ingestion.spark.file_groups.arrow_types import arrow_type
from ingestion.spark.loading.fitting import FitResult, FitRules, fit_rows
from tests.unit.ingestion.type_strategies import TYPES

ITEMS = "array<struct<sku:string,n:long>>"


def fit(values: Any, type_: str) -> FitResult:
    return fit_rows(Chunk({"c": values}), FitRules(Schema.of({"c": type_})))


def reasons(result: FitResult) -> list[tuple[str, str]]:
    return [(row.column, row.reason) for row in result.rejected]


AS_PYTHON: Callable[[list[Any], str], Any] = lambda values, type_: values  # noqa: E731
AS_ARROW: Callable[[list[Any], str], Any] = lambda values, type_: pa.array(values, arrow_type(type_))  # noqa: E731


@pytest.mark.parametrize("handed_over", [AS_PYTHON, AS_ARROW])
@pytest.mark.parametrize(
    ("given_as", "type_", "values"),
    [
        ("struct<a:int,b:struct<c:date>>", "struct<a:long,b:struct<c:date,d:double>>",
         [{"a": 1, "b": {"c": date(2026, 1, 2)}}, None, {"a": None, "b": None}]),
        (ITEMS, ITEMS, [[{"sku": "a", "n": 1}, None], [], None, [{"sku": None, "n": 2}]]),
        ("map<string,array<int>>", "map<string,array<long>>", [{"a": [1, None], "b": None}, {}, None]),
        ("array<array<timestamp>>", "array<array<timestamp>>", [[[datetime(2026, 1, 1, tzinfo=UTC)], None], None]),
        ("struct<p:decimal(4,1)>", "struct<p:decimal(20,2)>", [{"p": Decimal("1.5")}, None]),
    ],
)  # fmt: skip
def test_what_fits_is_as_it_was_with_null_in_fields_that_are_missing(
    handed_over: Callable[[list[Any], str], Any], given_as: str, type_: str, values: list[Any]
) -> None:
    result = fit(handed_over(values, given_as), type_)
    assert result.rejected == ()
    assert result.rows["c"].type == arrow_type(type_)
    assert [_plain(value) for value in result.rows["c"].to_pylist()] == [_with_nulls(v, type_) for v in values]


def _plain(value: Any) -> Any:
    """Arrow's pairs are a dict."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {key: _plain(inner) for key, inner in value}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def _with_nulls(value: Any, type_: str) -> Any:
    if type_.startswith("map") and value == {}:
        return []
    if "d:double" in type_ and value and value["b"]:
        return {**value, "b": {**value["b"], "d": None}}
    return value


@pytest.mark.parametrize("handed_over", [AS_PYTHON, AS_ARROW])
def test_a_value_in_a_field_that_nobody_knows_is_rejected_by_its_path(
    handed_over: Callable[[list[Any], str], Any],
) -> None:
    given_as = "array<struct<sku:string,n:long,colour:string>>"
    values = [[{"sku": "a", "n": 1, "colour": None}], [{"sku": "b"}, {"sku": "c", "n": 2, "colour": "red"}], None]
    result = fit(handed_over(values, given_as), ITEMS)
    assert reasons(result) == [("c[].colour", "`c[].colour` is no field of the source's schema")]
    assert result.rows["c"].to_pylist() == [[{"sku": "a", "n": 1}], None]


@pytest.mark.parametrize(
    ("values", "type_", "reason"),
    [
        ([{"a": 1}, {"a": "x"}, {"a": [2]}], "struct<a:long>",
         ["`c.a` is \"x\" (str), which is no long", "`c.a` is [2] (list), which is no long"]),
        ([{"a": 1}, {"a": 1.5}], "struct<a:long>", ["`c.a` is 1.5 (float), which is no long"]),
        ([{"a": 1}, 5, [1], "{}"], "struct<a:long>",
         ["`c` is 5 (int), which is no structure", "`c` is [1] (list), which is no structure",
          "`c` is \"{}\" (str), which is no structure"]),
        ([[1], {"a": 1}, "abc"], "array<long>",
         ["`c` is {\"a\": 1} (dict), which is no list", "`c` is \"abc\" (str), which is no list"]),
        ([{"a": 1}, [1], {1: 2}, {"b": "x"}], "map<string,long>",
         ["`c` is [1] (list), which is no map", "`c` has a key that is no text", "`c[]` is \"x\" (str), which is no long"]),
        (pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())), "map<string,long>", ["`c` has a key twice"]),
        ([[[1], [2, "x", "y"]], [[3]]], "array<array<long>>", ["`c[][]` is \"x\" (str), which is no long"]),
        ([[{"k": {"d": "2026-02-30"}}]], "array<struct<k:map<string,date>>>",
         ["`c[].k[]` is \"2026-02-30\" (str), which is no date"]),
    ],
)  # fmt: skip
def test_what_does_not_fit_inside_is_rejected_by_its_path(values: Any, type_: str, reason: list[str]) -> None:
    result = fit(values, type_)
    assert [text for _, text in reasons(result)] == reason
    assert len(result.rows) == len(values) - len(reason)


def test_bytes_that_are_no_text_and_times_of_no_year_are_found_inside_of_arrow_too() -> None:
    bad_text = pa.StructArray.from_arrays([pa.array([b"ok", b"\xff"]).view(pa.string())], names=["a"])
    assert len(fit(bad_text, "struct<a:string>").rejected) == 1
    far = pa.ListArray.from_arrays([0, 1, 2], pa.array([0, 2**60], pa.timestamp("us", "UTC")))
    assert reasons(fit(far, "array<timestamp>"))[0][0] == "c[]"


def test_slices_of_arrow_begin_where_they_begin() -> None:
    lists = pa.array([[9], None, [7, 8], [6]], pa.list_(pa.int32()))
    assert fit(lists[1:3], "array<long>").rows["c"].to_pylist() == [None, [7, 8]]
    fixed = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int32(), 2))
    assert fit(fixed[1:], "array<long>").rows["c"].to_pylist() == [None, [3, 4]]
    structs = pa.array([{"a": 1}, None, {"a": 3}], pa.struct([("a", pa.int32())]))
    assert fit(structs[1:], "struct<a:long>").rows["c"].to_pylist() == [None, {"a": 3}]


def test_the_entries_of_a_map_are_stored_in_the_order_of_their_keys() -> None:
    assert fit([{"b": 1, "a": 2}], "map<string,long>").rows["c"].to_pylist() == [[("a", 2), ("b", 1)]]
    pairs = pa.array([[("b", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64()))
    assert fit(pairs, "map<string,long>").rows["c"].to_pylist() == [[("a", 2), ("b", 1)]]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([{"b": [1, None], "a": "ü"}, None, {}], ['{"a": "\\u00fc", "b": [1, null]}', None, "{}"]),
        ([[1, {"a": 2}], "plain", 5], ['[1, {"a": 2}]', "plain", "5"]),
        ([time(8, 0), time(23, 59, 59, 500_000), None], ["08:00:00", "23:59:59.500000", None]),
        ([timedelta(hours=8), timedelta(hours=838, minutes=59, seconds=59), -timedelta(seconds=1.5), timedelta(0)],
         ["08:00:00", "838:59:59", "-00:00:01.500000", "00:00:00"]),
        (pa.array([time(8), time(9, 0, 0, 1)], pa.time64("us")), ["08:00:00", "09:00:00.000001"]),
        (pa.array([time(8)], pa.time64("ns")), ["08:00:00"]),
        (pa.array([timedelta(hours=30)], pa.duration("ns")), ["30:00:00"]),
        (pa.array([{"a": 1}], pa.struct([("a", pa.int32())])), ['{"a": 1}']),
        ([UUID(int=5), None], ["00000000-0000-0000-0000-000000000005", None]),
    ],
)  # fmt: skip
def test_what_has_no_type_in_the_lake_is_text(values: Any, texts: list[str | None]) -> None:
    result = fit(values, "string")
    assert (result.rejected, result.rows["c"].to_pylist()) == ((), texts)


def test_numbers_beyond_a_signed_long_fit_a_decimal_of_twenty_digits() -> None:
    largest = 2**64 - 1
    for values in ([largest, 0, None], pa.array([largest, 0, None], pa.uint64())):
        assert fit(values, "decimal(20,0)").rows["c"].to_pylist() == [Decimal(largest), Decimal(0), None]
    assert len(fit([largest], "long").rejected) == 1


def _values(type_: ColumnType) -> st.SearchStrategy[Any]:
    """Values that Python has of a type, or null."""
    match type_:
        case ArrayOf(element):
            of_type: st.SearchStrategy[Any] = st.lists(_values(element), max_size=3)
        case MapOf(value):
            of_type = st.dictionaries(st.sampled_from("xyz"), _values(value), max_size=3)
        case StructOf(fields):
            of_type = st.fixed_dictionaries({name: _values(field) for name, field in fields})
        case Plain(name):
            of_type = _PLAIN_VALUES.get(name, st.decimals(-100, 100, places=2))
    return st.none() | of_type


_PLAIN_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "string": st.text(),
    "binary": st.binary(),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
}


@given(st.data(), TYPES)
def test_any_value_of_a_type_fits_it_and_is_the_same_afterwards(data: st.DataObject, type_: ColumnType) -> None:
    values = data.draw(st.lists(_values(type_), min_size=1, max_size=4))
    result = fit(values, str(type_))
    assert result.rejected == ()
    as_arrow = pa.array(values, arrow_type(str(type_)))
    again = fit(as_arrow, str(type_))
    assert again.rejected == ()
    assert again.rows == result.rows
    assert parse_type(str(type_)) == type_


def test_what_lies_behind_a_list_that_is_null_belongs_to_no_row() -> None:
    """As in a column that Arrow has masked: the items are still there."""
    values = pa.array(["1", "2", "x", "4"])
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3, 4], pa.int32()), values, mask=pa.array([True, False, False]))
    result = fit(lists, "array<long>")
    assert result.rows["c"].to_pylist() == [None, [4]]
    assert [row.raw for row in result.rejected] == ['{"c": ["x"]}']


def test_what_lies_behind_a_map_that_is_null_belongs_to_no_row() -> None:
    keys, values = pa.array(["z", "a", "b"]), pa.array(["1", "x", "3"])
    maps = pa.MapArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), keys, values, mask=pa.array([True, False, False])
    )
    result = fit(maps, "map<string,long>")
    assert result.rows["c"].to_pylist() == [None, [("b", 3)]]
    assert len(result.rejected) == 1


def test_a_null_list_of_fixed_length_has_no_items() -> None:
    lists = pa.array([["1", "2"], None, ["x", "4"]], pa.list_(pa.string(), 2))
    result = fit(lists, "array<long>")
    assert result.rows["c"].to_pylist() == [[1, 2], None]
    assert [row.raw for row in result.rejected] == ['{"c": ["x", "4"]}']
