"""Partition columns of an input for which Hudi reads other values than its files hold: null, another type, or nothing at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ingestion.spark.tables.avro_schema import latest_schema, schema_of
from ingestion.spark.tables.timeline import Timeline

_BY_TIME = ("TIMESTAMP", "TIMESTAMP_AVRO")
_ADVICE = "and changed rows are read from files: let its writer partition it by a date or a text"


def problem_of_partitions(timeline: Timeline, properties: Mapping[str, str]) -> str:
    """As `problem_in`, of a table as its newest commit has it. `properties`: its own."""
    return problem_in(properties, latest_schema(timeline)) if partition_fields(properties) else ""


def problem_in(properties: Mapping[str, str], avro_schema: str) -> str:
    """The end of a sentence about the table; empty: there is none, or the schema does not say. `avro_schema`: JSON, or empty."""
    fields = partition_fields(properties)
    types = _types_of(fields, avro_schema)
    generator = properties.get("hoodie.table.keygenerator.type", "").upper()
    for name, kind in fields.items():
        type_ = types.get(name.casefold(), "string")
        if type_.startswith("timestamp"):
            return f"is partitioned by `{name}`, a {type_}, which Hudi reads as null or not at all, {_ADVICE}"
        if type_ != "string" and (generator in _BY_TIME or kind == "timestamp"):
            return f"is partitioned by `{name}`, a {type_} whose folders are named by a time (`hoodie.table.keygenerator.type` is {generator}): Hudi reads other values than its files hold, {_ADVICE}"
    return ""


def partition_fields(properties: Mapping[str, str]) -> dict[str, str]:
    """By name the kind, which key generators have that treat each column in its own way."""
    fields = properties.get("hoodie.table.partition.fields", "").split(",")
    return {name: kind.lower() for name, _, kind in (field.strip().partition(":") for field in fields) if name}


def _types_of(names: Iterable[str], avro_schema: str) -> dict[str, str]:
    """By name in small letters. Other columns are left out: one may have a type that only Spark can name."""
    folded = {name.casefold() for name in names}
    fields = json.loads(avro_schema)["fields"] if avro_schema else []
    schema = schema_of(json.dumps({"fields": [field for field in fields if field["name"].casefold() in folded]}))
    return {} if schema is None else {name.casefold(): type_ for name, type_ in schema.types.items()}
