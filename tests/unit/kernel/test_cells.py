"""Bodies of cells are read strictly, and each field has its column of the lake."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakehub.kernel.cells.bodies import MAX_BODY_BYTES, BrokenBody, read_body
from lakehub.kernel.cells.cell_rows import Cell, assembled, read_cell, sampled_types
from lakehub.kernel.cells.cell_tables import (
    CellColumns,
    CellOptions,
    NotCells,
    find_cell_columns,
    has_cells,
    read_cell_object,
)
from lakehub.kernel.cells.fields import MAX_COLUMNS, fields_of, lake_columns_of, needed_types, read_values
from lakehub.kernel.json_texts import MAX_DEPTH

NONE = CellOptions()


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


@pytest.mark.parametrize(
    ("content", "defect", "reason"),
    [
        ("", "corrupt", "not JSON"),
        ("{", "corrupt", "not JSON"),
        ('{"a": 1} x', "corrupt", "not JSON"),
        ("[1]", "corrupt", "a list"),
        ('"text"', "corrupt", "a text"),
        ("7", "corrupt", "a single value"),
        ('{"a": NaN}', "type", "NaN"),
        ('{"a": [-Infinity]}', "type", "-Infinity"),
        ('{"a": 1e999}', "type", "1e999"),
        ('{"a": 9223372036854775808}', "type", "9223372036854775808"),
        ('{"a": {"b": -9223372036854775809}}', "type", "-9223372036854775809"),
        ('{"a": ' + "9" * 100_000 + "}", "type", "64 bits"),
        ('{"a": 1, "a": 2}', "corrupt", "`a` twice"),
        ('{"a": {"b": 1, "b": 1}}', "corrupt", "`b` twice"),
        (b'{"a": "\xff"}', "invalid_utf8", "not UTF-8"),
        ('{"a": "\udcff"}', "invalid_utf8", "not UTF-8"),
        (r'{"a": "\ud800"}', "invalid_utf8", "half of a character"),
        (r'{"a": [{"b": "\udfff"}]}', "invalid_utf8", "half of a character"),
        (r'{"\ud800": 1}', "invalid_utf8", "half of a character"),
        (nested(MAX_DEPTH + 1), "corrupt", "deeper than 100"),
        ("[" * 200_000, "corrupt", "deeper than 100"),
        ('{"a": "' + "x" * MAX_BODY_BYTES + '"}', "oversized", "4,194,304"),
    ],
)
def test_what_is_no_body_is_told_by_what_is_wrong_with_it(content: Any, defect: str, reason: str) -> None:
    with pytest.raises(BrokenBody, match=reason) as broken:
        read_body(content)
    assert broken.value.defect == defect
    assert len(str(broken.value)) < 400
    str(broken.value).encode()


@pytest.mark.parametrize(
    ("content", "body"),
    [
        (None, None),
        ("null", None),
        ("{}", {}),
        (b' {"a": 9223372036854775807} ', {"a": 2**63 - 1}),
        ('{"a": "\\ud83d\\ude00", "": 1}', {"a": "😀", "": 1}),
        (nested(MAX_DEPTH), json.loads(nested(MAX_DEPTH))),
    ],
)
def test_a_body_is_a_json_object_or_null(content: Any, body: Any) -> None:
    assert read_body(content) == body


def test_each_field_has_a_column_and_what_is_nested_is_its_text() -> None:
    fields = fields_of("base", {"city": "Ulm", "stops": [1, {"ü": None}]}, 7)
    assert fields == {"base__ref_key": 7, "base__city": "Ulm", "base__stops": '[1,{"ü":null}]'}
    assert fields_of("base", None, 7) == {"base__ref_key": 7}
    assert fields_of("base", {"Odd-Name": 1}, 7, as_text=True) == {"base__ref_key": 7, "base": '{"Odd-Name":1}'}
    assert lake_columns_of(("row_key", "base", "base__city", "base_x__y", "basement__z"), "base") == (
        "base",
        "base__city",
    )


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1, 2**31 - 1], "int"),
        ([1, 2**31], "long"),
        ([2**40, 1], "long"),
        ([1, 1.5], "double"),
        ([1.5, 2**53], "double"),
        ([True, False, None], "boolean"),
        (["x", None], "string"),
        (["x", {"a": 1}], "string"),
        ([None, 1], "int"),
    ],
)
def test_types_widen_as_values_come(values: list[Any], type_: str) -> None:
    types: Any = {}
    for value in values:
        types = needed_types(types, "base", fields_of("base", {"n": value}, 1))
    assert types == {"base__ref_key": "long", "base__n": type_}
    for value in values:
        read = read_values(types, {"base__n": value})["base__n"]
        assert read is None or type_ != "double" or type(read) is float


@pytest.mark.parametrize(
    ("first", "then"), [(1, "x"), ("x", 1), (True, 1), (1, True), (2**31, 0.5), (0.5, 2**53 + 1), (0.5, [])]
)
def test_a_value_that_its_column_cannot_have_is_refused_with_what_to_do(first: Any, then: Any) -> None:
    types = needed_types({}, "base", fields_of("base", {"n": first}, 1))
    with pytest.raises(BrokenBody, match=r"`base__n` is .*\?text=base"):
        needed_types(types, "base", fields_of("base", {"n": then}, 2))


@pytest.mark.parametrize("body", [{"a-b": 1}, {"": 1, "ü": 1}, {"City": "x"}, {"ref_key": 1}])
def test_a_field_that_the_lake_cannot_name_is_refused_with_what_to_do(body: Any) -> None:
    with pytest.raises(BrokenBody, match=r"\?text=base"):
        needed_types({"base__city": "string"}, "base", fields_of("base", body, 1))


def test_a_dataset_does_not_get_ever_more_columns() -> None:
    types = {f"base__f{number}": "int" for number in range(MAX_COLUMNS)}
    with pytest.raises(BrokenBody, match="2,000 columns"):
        needed_types(types, "base", {"base__more": 1})
    assert needed_types(types, "base", {"base__f0": 2}) == types


@pytest.mark.parametrize(
    ("values", "defect"),
    [
        ((None, "base", 1), "row_key"),
        (("", "base", 1), "row_key"),
        (("\udcff", "base", 1), "invalid_utf8"),
        (("a", None, 1), "field"),
        (("a", "", 1), "field"),
        (("a", "two__parts", 1), "field"),
        (("a", "ends_", 1), "field"),
        (("a", "a-b", 1), "field"),
        (("a", "\udcff", 1), "invalid_utf8"),
        (("a", "base", None), "reference_key"),
        (("a", "base", 2**63), "reference_key"),
    ],
)
def test_a_cell_says_whose_it_is(values: tuple[Any, ...], defect: str) -> None:
    with pytest.raises(BrokenBody) as broken:
        read_cell(*values, "{}", NONE)
    assert broken.value.defect == defect


def test_the_column_that_deletes_may_be_called_anything_and_have_any_body() -> None:
    assert read_cell("a", "__gone-", 1, "{broken", CellOptions(delete="__gone-")) == Cell("a", "__gone-", 1, None)


def test_a_row_is_made_of_the_newest_cell_of_each_column() -> None:
    options = CellOptions(delete="gone")
    cells = [Cell("a", "x", 3, {"n": 3}), Cell("a", "x", 1, {"n": 1}), Cell("a", "y", 2, {}), Cell("b", "x", 4, {})]
    graves = [Cell("a", "gone", 2, None), Cell("b", "gone", 4, None)]
    rows = assembled([*cells, *graves], options)
    assert (rows["a"].columns, rows["a"].deleted) == ({"x": cells[0]}, 2)
    assert rows["b"].is_there is False
    assert sampled_types("row_key", "string", [*cells, *graves], options) == {
        "row_key": "string", "x__ref_key": "long", "x__n": "int", "y__ref_key": "long",
    }  # fmt: skip


def test_columns_are_found_by_their_usual_names_or_as_the_feed_says() -> None:
    usual = ("added_id", "Row_Key", "column_name", "REF_KEY", "body", "created_at")
    assert find_cell_columns("trips", usual, NONE) == CellColumns("Row_Key", "column_name", "REF_KEY", "body")
    assert (has_cells(usual), has_cells(("id", "city"))) == (True, False)
    table, options = read_cell_object("ops.trips?row_key=k&body=b&delete=gone&text=y, x")
    assert (table, options) == ("ops.trips", CellOptions("k", body="b", delete="gone", text=("x", "y")))
    assert find_cell_columns("trips", ("k", "column", "version", "b"), options).names == ("k", "column", "version", "b")


@pytest.mark.parametrize("options", ["bodi=x", "body", "body=", "body=a&body=b", "row_key=k?x=1"])
def test_what_a_feed_says_and_nobody_understands_is_refused(options: str) -> None:
    with pytest.raises(NotCells):
        find_cell_columns("trips", ("column", "ref_key", "body"), read_cell_object(f"trips?{options}")[1])


def test_a_table_that_lacks_a_column_is_told_which_and_what_to_write() -> None:
    with pytest.raises(NotCells, match=r"no column for `ref_key` .*`table\?row_key="):
        find_cell_columns("trips", ("row_key", "column", "body"), NONE)
    with pytest.raises(NotCells, match=r"no column `bodi`.*Did you mean `body`"):
        find_cell_columns("trips", ("row_key", "column", "ref_key", "body"), CellOptions(body="bodi"))
    with pytest.raises(NotCells, match="one column cannot be two parts"):
        find_cell_columns("trips", ("row_key", "column", "ref_key", "body"), CellOptions(body="column"))
