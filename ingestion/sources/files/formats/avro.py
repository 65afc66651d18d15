"""Avro: types are those of the schema that the file carries."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ingestion.domain.avro.types import AvroTypes
from ingestion.domain.column_types import STRING, in_lake, struct_in_lake
from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.sources import Chunk
from ingestion.sources.files.formats.records import MAX_COLUMNS, Record, chunked
from lakehub.kernel.avro_files import AvroFile


class AvroFormat:
    def schema(self, file: Any, _known_names: Collection[str] = (), /) -> Schema:
        fields = _fields(AvroFile(file))
        types = AvroTypes(struct_in_lake, lambda avro: STRING)
        return Schema(
            tuple(SchemaColumn(field["name"], str(in_lake(types.type_of(field["type"])))) for field in fields)
        )

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
