"""Which columns of an input have got another type, of those that a SELECT may read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ingestion.spark.etl.checks.input_types import changed_types

DATE = {"type": "int", "logicalType": "date"}


def schema(name: str = "orders", **types: Any) -> str:
    fields = [{"name": column, "type": ["null", type_]} for column, type_ in types.items()]
    return json.dumps({"type": "record", "name": name, "fields": [{"name": "_hoodie_file_name", "type": "string"}, *fields]})  # fmt: skip


BEFORE = schema(Id="int", amount="int", day="string", gone="string")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT ID, day FROM orders", ["`Id` (int -> long)"]),
        ("SELECT day, sum(o.amount) AS n, count(*) FROM orders AS o GROUP BY day", ["`amount` (int -> double)"]),
        ("SELECT day FROM orders", []),
        ("SELECT o.day FROM (SELECT * FROM orders) AS o", ["`Id` (int -> long)", "`amount` (int -> double)"]),
        ("SELECT o.* FROM orders AS o", ["`Id` (int -> long)", "`amount` (int -> double)"]),
    ],
)
def test_those_that_the_select_names_count(sql: str, expected: list[str]) -> None:
    assert changed_types(BEFORE, schema(Id="long", amount="double", day="string", new="int"), sql) == expected


def test_the_same_types_in_other_words_are_no_change() -> None:
    assert changed_types(BEFORE, schema("trips", Id="int", day="string", amount="int"), "SELECT * FROM orders") == []


def test_types_that_lakehub_has_none_for_are_compared_too() -> None:
    at = {"type": "long", "logicalType": "time-micros"}
    before, now = schema(at=at, n="int"), schema(at=at, n="long")
    assert changed_types(before, now, "SELECT at FROM orders") == []
    assert changed_types(before, now, "SELECT n FROM orders") == ['`n` (["null", "int"] -> ["null", "long"])']
