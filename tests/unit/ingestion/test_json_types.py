"""The column types of JSON lines and of Arrow's schemas."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from ingestion.domain.column_types import MAX_DEPTH, MAX_FIELDS, parse_type
from ingestion.sources.files.formats.arrow_types import type_name_of
from ingestion.sources.files.formats.json_lines import JsonLinesFormat
from ingestion.sources.files.formats.json_types import MAX_NODES, MAX_NODES_OF_FILE, JsonTypes

DEEP: object = 1
for _ in range(MAX_DEPTH + 3):
    DEEP = {"a": DEEP}


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([{"a": 1}, None, {"b": {"c": True}, "a": 2.5}], "struct<a:double,b:struct<c:boolean>>"),
        ([[1, None], [], [2]], "array<long>"),
        ([[{"a": "x"}, {"b": 1}], [{"a": None}]], "array<struct<a:string,b:long>>"),
        ([[], []], "array<string>"),
        ([[1], {"a": 1}], "string"),
        ([[1], ["x"]], "array<string>"),
        ([{"a": {"x": 1}}, {"a": [1]}], "struct<a:string>"),
        ([{}], "string"),
        ([{"a": {"two words": 1}, "b": 1}], "struct<a:string,b:long>"),
        ([{f"f{n}": 1 for n in range(MAX_FIELDS + 1)}], "string"),
        ([None], "string"),
    ],
)
def test_nested_json_has_the_type_that_its_values_have_in_common(values: list[object], type_: str) -> None:
    lines = "".join(f"{json.dumps({'c': value})}\n" for value in values)
    assert JsonLinesFormat().schema(io.BytesIO(lines.encode())).types == {"c": type_}


@pytest.mark.parametrize(
    ("known_names", "columns"),
    [((), ("ID", "amount")), (("id",), ("id", "amount")), (("ID", "id_2"), ("ID", "amount"))],
)
def test_a_name_is_a_column_where_the_lake_can_hold_it_beside_those_that_are_known(
    known_names: tuple[str, ...], columns: tuple[str, ...]
) -> None:
    lines = io.BytesIO(b'{"ID": 1, "a-b": 2, "_hoodie_file_name": 3}\n{"id": 4, "amount": 5, "AMOUNT": 6}\n')
    assert JsonLinesFormat().schema(lines, known_names).names == columns


def test_json_that_is_too_deep_for_the_lake_ends_in_text() -> None:
    name = JsonLinesFormat().schema(io.BytesIO(json.dumps({"c": DEEP}).encode())).types["c"]
    assert name == "struct<a:" * (MAX_DEPTH - 1) + "string" + ">" * (MAX_DEPTH - 1)
    assert str(parse_type(name)) == name


def met(values: Iterable[Any]) -> tuple[JsonTypes, int]:
    """With the most nodes that there were after a row."""
    types, most = JsonTypes(), 0
    for value in values:
        types.meet({"c": value})
        most = max(most, types.nodes)
    return types, most


def type_of(types: JsonTypes) -> str:
    return str(types.column_types()["c"])


def test_nested_names_that_are_new_in_each_row_are_text_and_take_little_memory() -> None:
    types, most = met({f"a{row % 500}": {f"b{row}_{n}": {"x": 1} for n in range(100)}} for row in range(500))
    assert most <= MAX_NODES
    assert (type_of(types), types.nodes) == ("string", 1)


def test_one_row_of_very_many_names_is_text_and_what_is_around_keeps_its_type() -> None:
    types, most = met([{"n": 1, "wide": {f"a{n}": {"x": n} for n in range(20_000)}, "list": [1.5]}])
    assert type_of(types) == "struct<n:long,wide:string,list:array<double>>"
    assert most == 5


@pytest.mark.parametrize("other", [1, "x", [1], True])
def test_what_is_inside_an_object_is_forgotten_when_a_value_of_another_kind_comes(other: object) -> None:
    types, most = met([{f"a{n}": 1 for n in range(500)}, other, {"b": 1}])
    assert most == 501
    assert (type_of(types), types.nodes) == ("string", 1)


def test_all_columns_together_have_a_bound() -> None:
    types = JsonTypes()
    for column in range(200):
        types.meet({f"c{column}": {f"a{n}": 1 for n in range(900)}})
        types.meet({"c": {"a": 1}})
        assert types.nodes <= MAX_NODES_OF_FILE
    assert type_of(types) == "struct<a:long>"
    assert str(types.column_types()["c199"]) == "string"


@pytest.mark.parametrize(
    ("arrow", "type_"),
    [
        (pa.struct([("a", pa.int8()), ("b", pa.list_(pa.decimal128(5, 2)))]), "struct<a:int,b:array<decimal(5,2)>>"),
        (pa.map_(pa.string(), pa.large_list(pa.date64())), "map<string,array<date>>"),
        (pa.map_(pa.int64(), pa.string()), "string"),
        (pa.list_(pa.float16(), 3), "array<float>"),
        (pa.struct([pa.field("a", pa.int8()), pa.field("a", pa.int8())]), "string"),
        (pa.struct([]), "string"),
        (pa.list_(pa.struct([("two words", pa.int8())])), "array<string>"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.uint64(), "decimal(20,0)"),
        (pa.uint32(), "long"),
        (pa.time64("ns"), "string"),
        (pa.binary(16), "binary"),
    ],
)
def test_nested_types_of_arrow(arrow: pa.DataType, type_: str) -> None:
    assert type_name_of(arrow) == type_
