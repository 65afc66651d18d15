"""The columns of a table as its commits say them."""

from __future__ import annotations

import json

import pytest

from ingestion.domain.schema import Schema
from ingestion.spark.tables.avro_schema import schema_of

DECIMAL = {"type": "fixed", "name": "price", "size": 5, "logicalType": "decimal", "precision": 10, "scale": 2}
TYPES = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "decimal(10,2)": DECIMAL,
    "array<long>": {"type": "array", "items": ["null", "long"]},
    "map<string,date>": {"type": "map", "values": {"type": "int", "logicalType": "date"}},
    "struct<a:int,b:array<string>>": {
        "type": "record",
        "name": "inner",
        "fields": [
            {"name": "a", "type": ["null", "int"]},
            {"name": "b", "type": {"type": "array", "items": "string"}},
        ],
    },
    "decimal(20,0)": {**DECIMAL, "precision": 20, "scale": 0},
}


def record(**types: object) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": n, "type": t} for n, t in types.items()]})


@pytest.mark.parametrize(("name", "avro"), TYPES.items())
def test_each_type_is_named(name: str, avro: object) -> None:
    assert schema_of(record(plain=avro, nullable=["null", avro])) == Schema.of({"plain": name, "nullable": name})


def test_a_type_that_an_earlier_column_named_is_known_by_its_name() -> None:
    inner = {"type": "record", "name": "inner", "namespace": "shop", "fields": [{"name": "a", "type": "int"}]}
    schema = schema_of(record(first=inner, short="inner", long={"type": "array", "items": ["null", "shop.inner"]}))
    assert schema == Schema.of({"first": "struct<a:int>", "short": "struct<a:int>", "long": "array<struct<a:int>>"})


def test_columns_of_the_table_format_are_left_out() -> None:
    assert schema_of(record(_seqno="string", id="long"), without=("_seqno",)) == Schema.of({"id": "long"})


@pytest.mark.parametrize(
    "avro",
    [
        {"type": "array", "items": ["null", "long", "string"]},
        {"type": "record", "name": "inner", "fields": []},
        ["null", "long", "string"],
        {"type": "long", "logicalType": "time-micros"},
        "of_another_record",
    ],
)
def test_what_only_spark_can_name_is_not_guessed(avro: object) -> None:
    assert schema_of(record(id="long", odd=avro)) is None
