"""File formats: each a schema and a stream of chunks. To add one: a class here, a line in FORMATS."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, Protocol

import fastavro
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.sources import Chunk, UnreadableRow

_MAX_INFERRED_ROWS = 5000


class Format(Protocol):
    def schema(self, file: Any) -> Schema: ...

    def chunks(self, file: Any, rows: int) -> Iterator[Chunk]: ...


class CsvFormat:
    """A header line, then rows; an empty field is null. Types are inferred from the first block."""

    def schema(self, file: Any) -> Schema:
        options = pa_csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
        return _schema_from_arrow(
            pa_csv.open_csv(
                file, convert_options=options, parse_options=pa_csv.ParseOptions(invalid_row_handler=lambda row: "skip")
            ).schema
        )

    def chunks(self, file: Any, rows: int) -> Iterator[Chunk]:
        lines = csv.reader(io.TextIOWrapper(file, "utf-8", newline=""))
        names = next(lines, [])
        for piece in _batched(lines, rows):
            whole = [line for line in piece if len(line) == len(names)]
            broken = tuple(
                UnreadableRow(",".join(line), f"{len(line)} fields, but the header has {len(names)}")
                for line in piece
                if len(line) not in (0, len(names))
            )
            yield Chunk({name: [line[place] or None for line in whole] for place, name in enumerate(names)}, broken)


class JsonLinesFormat:
    """An object a line. Types are inferred from the first lines; nested values are kept as JSON text."""

    def schema(self, file: Any) -> Schema:
        kinds: dict[str, set[type]] = {}
        for _, line in zip(range(_MAX_INFERRED_ROWS), io.BufferedReader(file), strict=False):
            row = _parse_json_row(line)
            for name, value in row.items() if isinstance(row, dict) else ():
                kinds.setdefault(name, set()).update([] if value is None else [type(value)])
        return Schema(tuple(SchemaColumn(name, _json_type(value_types)) for name, value_types in kinds.items()))

    def chunks(self, file: Any, rows: int) -> Iterator[Chunk]:
        for piece in _batched((line for line in io.BufferedReader(file) if line.strip()), rows):
            parsed = [_parse_json_row(line) for line in piece]
            broken = tuple(
                UnreadableRow(line.decode(errors="replace").rstrip(), row)
                for line, row in zip(piece, parsed, strict=True)
                if isinstance(row, str)
            )
            yield _chunk_of_rows([row for row in parsed if isinstance(row, dict)], broken)


class ParquetFormat:
    def schema(self, file: Any) -> Schema:
        return _schema_from_arrow(pq.read_schema(file))

    def chunks(self, file: Any, rows: int) -> Iterator[Chunk]:
        for batch in pq.ParquetFile(file).iter_batches(batch_size=rows):
            yield Chunk(dict(zip(batch.schema.names, batch.columns, strict=True)))


class AvroFormat:
    def schema(self, file: Any) -> Schema:
        written = fastavro.reader(file).writer_schema
        assert isinstance(written, dict)
        return Schema(tuple(SchemaColumn(field["name"], _avro_type(field["type"])) for field in written["fields"]))

    def chunks(self, file: Any, rows: int) -> Iterator[Chunk]:
        for piece in _batched(fastavro.reader(file), rows):
            yield _chunk_of_rows(piece, ())


FORMATS: dict[str, Format] = {
    ".csv": CsvFormat(),
    ".jsonl": JsonLinesFormat(),
    ".ndjson": JsonLinesFormat(),
    ".parquet": ParquetFormat(),
    ".avro": AvroFormat(),
}


def type_name_of(arrow: pa.DataType) -> str:
    """The name of the column type that holds an Arrow type; what has no twin (lists, structures, times) is kept as JSON text."""
    if pa.types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    if pa.types.is_integer(arrow):
        return "int" if arrow.bit_width < 32 or pa.types.is_int32(arrow) else "long"
    return next((name for matches, name in _TYPE_NAMES if matches(arrow)), "string")


_TYPE_NAMES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_float64, "double"),
    (pa.types.is_floating, "float"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
)
_AVRO_TYPES = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "bytes": "binary",
}
_AVRO_LOGICAL = {"date": "date", "timestamp-millis": "timestamp", "timestamp-micros": "timestamp"}


def _schema_from_arrow(schema: pa.Schema) -> Schema:
    return Schema(tuple(SchemaColumn(field.name, type_name_of(field.type)) for field in schema))


def _avro_type(avro_type: Any) -> str:
    if isinstance(avro_type, list):
        branches = [branch for branch in avro_type if branch != "null"]
        return _avro_type(branches[0]) if len(branches) == 1 else "string"
    if isinstance(avro_type, dict):
        if avro_type.get("logicalType") == "decimal":
            return f"decimal({avro_type['precision']},{avro_type.get('scale', 0)})"
        return _AVRO_LOGICAL.get(avro_type.get("logicalType", "")) or _avro_type(avro_type["type"])
    return _AVRO_TYPES.get(avro_type, "string")


def _json_type(kinds: set[type]) -> str:
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "long"
    return "double" if kinds and kinds <= {int, float} else "string"


def _parse_json_row(line: bytes) -> dict[str, Any] | str:
    """The row, or why it is none."""
    try:
        row = json.loads(line)
    except ValueError as problem:
        return f"not JSON: {problem}"
    return row if isinstance(row, dict) else f"not an object, but {type(row).__name__}"


def _chunk_of_rows(rows: list[Any], broken: tuple[UnreadableRow, ...]) -> Chunk:
    names = dict.fromkeys(name for row in rows for name in row)
    return Chunk({name: [row.get(name) for row in rows] for name in names}, broken)


def _batched(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    piece: list[Any] = []
    for item in items:
        piece.append(item)
        if len(piece) == size:
            yield piece
            piece = []
    if piece:
        yield piece
