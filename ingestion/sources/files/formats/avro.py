"""Avro: types are those of the schema that the file carries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.sources import Chunk
from ingestion.sources.files.formats.records import MAX_COLUMNS, Record, chunked
from lakehub.kernel.avro_files import AvroFile

_TYPES = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "bytes": "binary",
}
_LOGICAL = {"date": "date", "timestamp-millis": "timestamp", "timestamp-micros": "timestamp"}


class AvroFormat:
    def schema(self, file: Any) -> Schema:
        fields = _fields(AvroFile(file))
        return Schema(tuple(SchemaColumn(field["name"], _type_of(field["type"])) for field in fields))

    def chunks(self, file: Any, rows: int) -> Iterator[Chunk]:
        avro = AvroFile(file)
        names = [field["name"] for field in _fields(avro)]
        records = (Record(row, len(names), _size_of(row)) for row in avro.records())
        for piece in chunked(records, rows):
            yield Chunk({name: [record.values.get(name) for record in piece] for name in names})


def _fields(avro: AvroFile) -> list[Any]:
    fields: list[Any] = avro.schema["fields"]
    if len(fields) > MAX_COLUMNS:
        raise ValueError(f"it has {len(fields):,} columns; {MAX_COLUMNS:,} are the most")
    return fields


def _size_of(row: dict[str, Any]) -> int:
    return sum(len(value) for value in row.values() if isinstance(value, str | bytes | list | dict))


def _type_of(avro_type: Any) -> str:
    if isinstance(avro_type, list):
        branches = [branch for branch in avro_type if branch != "null"]
        return _type_of(branches[0]) if len(branches) == 1 else "string"
    if isinstance(avro_type, dict):
        if avro_type.get("logicalType") == "decimal":
            return f"decimal({avro_type['precision']},{avro_type.get('scale', 0)})"
        return _LOGICAL.get(avro_type.get("logicalType", "")) or _type_of(avro_type["type"])
    return _TYPES.get(avro_type, "string")
