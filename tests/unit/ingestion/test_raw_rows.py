"""Rejected rows are written down whatever they hold, and read again as they were."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.sources import Chunk
from ingestion.spark.loading.fitting import FitRules, fit_rows
from ingestion.spark.loading.raw_rows.as_json import json_of_row, raw_row_json
from ingestion.spark.loading.raw_rows.replayed import chunk_of, replayed_row
from ingestion.spark.loading.staging import add_digests, error_rows_table

VALUES: dict[str, tuple[str, Any]] = {
    "bytes": ("binary", b"\xff\0"),
    "day": ("date", date(2026, 11, 16)),
    "at": ("timestamp", datetime(2026, 11, 16, 5, 0, 0, 123456, UTC)),
    "clock": ("string", time(5, 30)),
    "length": ("string", timedelta(hours=25)),
    "uuid": ("string", UUID(int=7)),
    "price": ("decimal(12,2)", Decimal("12.50")),
    "big": ("long", 2**63 - 1),
    "half": ("double", 0.1),
    "none": ("long", None),
    "list": ("array<long>", [1, None]),
    "structure": ("struct<a:long,b:string>", {"a": 1, "b": "x"}),
    "map": ("map<string,long>", {"a": 1}),
    "flag": ("boolean", True),
}
TYPES = {name: type_ for name, (type_, _) in VALUES.items()}
DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


def error(raw: str) -> dict[str, Any]:
    return {"error_key": "k", "column": "c", "reason": "r", "raw": raw, "source": "s", "table_at": ""}


def schema(types: dict[str, str]) -> Schema:
    return Schema(tuple(SchemaColumn(name, type_) for name, type_ in types.items()))


def test_every_value_comes_back_as_it_was_stored_at_first() -> None:
    chunk = Chunk({name: [value] for name, (_, value) in VALUES.items()})
    row = replayed_row(error(raw_row_json(chunk, 0)), "{}", TYPES, max_raw=10_000)
    stored, again = (fit_rows(each, FitRules(schema(TYPES))) for each in (chunk, chunk_of([row])))
    assert (row.problem, stored.rejected, again.rejected) == ("", (), ())
    assert again.rows.to_pylist() == stored.rows.to_pylist()


def test_bytes_that_did_not_fit_a_text_do_not_fit_it_when_they_come_again() -> None:
    """The JSON that stands for them in the error table was stored as the text."""
    types = {"note": "string"}
    stored, again = b"\xffA", replayed_row(error('{"note": {"base64": "/0E="}}'), "{}", types, max_raw=10_000)
    first, second = (fit_rows(each, FitRules(schema(types))) for each in (Chunk({"note": [stored]}), chunk_of([again])))
    assert (first.rejected[0].reason, len(second.rows)) == (second.rejected[0].reason, 0)


@pytest.mark.parametrize("inner", ["aGVsbG8=", "no base64", ["aGVsbG8="], None])
def test_a_structure_that_looks_like_bytes_comes_back_as_it_was(inner: Any) -> None:
    chunk, types = Chunk({"payload": [{"base64": inner}]}), {"payload": "string"}
    again = chunk_of([replayed_row(error(raw_row_json(chunk, 0)), "{}", types, max_raw=10_000)])
    rows = [fit_rows(each, FitRules(schema(types))).rows.to_pylist() for each in (chunk, again)]
    assert rows[0] == rows[1] == [{"payload": json.dumps({"base64": inner})}]


@pytest.mark.parametrize(
    "value",
    [{1: "a", "b": 2}, {(1, 2): "a"}, 10**5000, DEEP, "\ud800", b"\xff", Decimal("sNaN"), object()],
    ids=range(8),
)
def test_a_row_that_cannot_be_stored_is_written_down(value: Any) -> None:
    """It is rejected alone, by its column, and the row beside it is kept."""
    chunk = Chunk({"n": ["first", 2], "x": [value, None]})
    fitted = fit_rows(chunk, FitRules(schema({"n": "string", "x": "decimal(12,2)"})))
    (rejected,) = fitted.rejected
    assert (rejected.row, rejected.column, fitted.rows.num_rows) == (0, "x", 1)
    assert json.loads(rejected.raw)["n"] == "first"


def test_half_a_character_is_written_out() -> None:
    table = error_rows_table([{"error_key": "k", "raw": "\ud800", "reason": None}])
    assert table["raw"].to_pylist() == ["\\ud800"]
    assert table["reason"].to_pylist() == [None]


def test_the_digest_of_errors_is_the_same_in_any_order_and_split() -> None:
    rows = [{"error_key": f"k{number}", "column": "c", "reason": "r"} for number in range(5)]
    whole = add_digests(0, error_rows_table(rows))
    assert add_digests(add_digests(0, error_rows_table(rows[3:])), error_rows_table(rows[2::-1])) == whole
    assert add_digests(0, error_rows_table(rows[1:])) != whole


@pytest.mark.parametrize(
    ("raw", "fixed", "problem"),
    [
        ("{oops", "{}", "The raw text is not a row"),
        ("[1]", "{}", "The raw text is not a row"),
        ("[" * 9_000, "{}", "The raw text is not a row"),
        ("{}", "{}", "The row has no values"),
        ('{"gone": null}', "{}", "The row has no values"),
        ('{"bytes": "b\'x\'"}', "{}", "`bytes` holds bytes"),
        ('{"bytes": {"base64": "?"}}', "{}", "`bytes` holds bytes"),
        ('{"big": 1}' + " " * 10_000, "{}", "more than 10,000 characters"),
    ],
)
def test_what_cannot_be_replayed_says_why(raw: str, fixed: str, problem: str) -> None:
    assert problem in replayed_row(error(raw), fixed, TYPES, max_raw=10_000).problem


def test_values_take_the_place_of_the_rows_own() -> None:
    row = replayed_row(error('{"big": "x", "half": 1, "gone": 2}'), '{"big": 5, "gone": null}', TYPES, max_raw=10_000)
    assert (row.values, row.fixed) == ({"big": 5, "half": 1}, '{"big": 5, "gone": null}')
    assert replayed_row(error("{oops"), '{"big": 5}', TYPES, max_raw=10_000).values == {"big": 5}
    assert json_of_row(row.values) == '{"big": 5, "half": 1}'
