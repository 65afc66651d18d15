"""Partition columns of an input that Hudi reads unlike its files have them: as null, as another type, or not at all."""

from __future__ import annotations

from collections.abc import Mapping

from ingestion.spark.tables.avro_schema import schema_at, schema_of
from ingestion.spark.tables.timeline import Timeline

_BY_TIME = ("TIMESTAMP", "TIMESTAMP_AVRO")
_ADVICE = "and changed rows are read from files: let its writer partition it by a date or a text"


def problem_of_partitions(timeline: Timeline) -> str:
    """As `problem_in`, of a table as its newest commit has it."""
    properties = timeline.properties
    if not _partition_fields(properties):
        return ""
    return problem_in(properties, schema_at(timeline, timeline.latest_completion()))


def problem_in(properties: Mapping[str, str], avro_schema: str) -> str:
    """The end of a sentence about the table; empty: there is none, or the schema does not say. `avro_schema`: JSON, or empty."""
    schema = schema_of(avro_schema) if avro_schema else None
    types = {} if schema is None else {name.casefold(): type_ for name, type_ in schema.types.items()}
    generator = properties.get("hoodie.table.keygenerator.type", "").upper()
    for name, kind in _partition_fields(properties).items():
        type_ = types.get(name.casefold(), "string")
        if type_.startswith("timestamp"):
            return f"is partitioned by `{name}`, a {type_}, which Hudi reads as null or not at all, {_ADVICE}"
        if type_ != "string" and (generator in _BY_TIME or kind == "timestamp"):
            return f"is partitioned by `{name}`, a {type_} whose folders are named by a time (`hoodie.table.keygenerator.type` is {generator}): Hudi reads it unlike its files have it, {_ADVICE}"
    return ""


def _partition_fields(properties: Mapping[str, str]) -> dict[str, str]:
    """By name the kind, which key generators have that treat each column in its own way."""
    fields = properties.get("hoodie.table.partition.fields", "").split(",")
    return {name: kind.lower() for name, _, kind in (field.strip().partition(":") for field in fields) if name}
