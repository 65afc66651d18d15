"""The columns of a table as its own commits say them: no Spark job, and no look into a data file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ingestion.domain.schema import Schema, SchemaColumn

_PLAIN = {"boolean", "int", "long", "float", "double", "string"} | {"bytes", "enum"}
_NAMES = {"bytes": "binary", "enum": "string"}
_LOGICAL = {"date": "date", "timestamp-micros": "timestamp", "timestamp-millis": "timestamp"}


def schema_of(text: str, *, without: tuple[str, ...] = ()) -> Schema | None:
    """From Avro's JSON of a record. None where a column has a type that only Spark can name."""
    columns = []
    for field in json.loads(text)["fields"]:
        if field["name"] in without:
            continue
        type_ = _type_name(field["type"])
        if type_ is None:
            return None
        columns.append(SchemaColumn(field["name"], type_))
    return Schema(tuple(columns))


def _type_name(avro: Any) -> str | None:
    if isinstance(avro, list):
        branches = [branch for branch in avro if branch != "null"]
        return _type_name(branches[0]) if len(branches) == 1 else None
    if isinstance(avro, str):
        return _NAMES.get(avro, avro) if avro in _PLAIN else None
    return _annotated_name(avro)


def _annotated_name(avro: Mapping[str, Any]) -> str | None:
    annotation = avro.get("logicalType")
    if annotation == "decimal":
        return f"decimal({avro['precision']},{avro.get('scale', 0)})"
    if annotation is not None:
        return _LOGICAL.get(annotation)
    return _type_name(avro["type"])
