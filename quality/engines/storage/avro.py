"""Avro files as an Arrow table, for engines that have no reader of their own. They are held in memory, so they are bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakehub.catalog.metadata.damaged_files import explain_damage
from lakehub.kernel.avro_files import AvroFile
from quality.engines.scans.memory_size import parse_memory_size
from quality.engines.scans.parts import CannotRead

_BATCH_ROWS = 50_000


def read_avro(paths: Sequence[Path], shown: str, memory: str) -> pa.Table:
    """The rows of all files; a column that one lacks is null there. Raises CannotRead, also where they exceed `memory`."""
    if not paths:
        raise CannotRead(f"There are no files {shown}.")
    most = parse_memory_size(memory)
    tables: list[pa.Table] = []
    size = 0
    try:
        for table in (table for path in paths for table in _batches(path)):
            tables.append(table)
            size += table.nbytes
            if size > most:
                raise CannotRead(
                    f"The files {shown} take more than {memory} in memory, and Avro cannot be scanned in pieces. "
                    "Write them as Parquet, or ingest the dataset into the lake."
                )
        return pa.concat_tables(tables, promote_options="permissive")
    except (ValueError, KeyError, EOFError, OSError, pa.ArrowException) as bad:
        raise CannotRead(explain_damage(bad, paths, shown=f"The files {shown}")) from bad


def _batches(path: Path) -> Iterator[pa.Table]:
    """Batches of one file in the types of its schema, and at the least one with none of its rows."""
    with path.open("rb") as file:
        avro = AvroFile(file)
        schema = pa.schema([(field["name"], _arrow_type(field["type"])) for field in avro.schema["fields"]])
        rows: list[Any] = []
        yield schema.empty_table()
        for row in avro.records():
            rows.append(row)
            if len(rows) == _BATCH_ROWS:
                yield pa.Table.from_pylist(rows, schema)
                rows = []
        yield pa.Table.from_pylist(rows, schema)


_PLAIN_TYPES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
_LOGICAL_TYPES = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "time-millis": pa.time64("us"),
    "time-micros": pa.time64("us"),
}


def _arrow_type(schema: Any) -> pa.DataType:
    """Raises ValueError for a type that there is no column of."""
    if isinstance(schema, list):
        kinds = [member for member in schema if member != "null"]
        if len(kinds) > 1:
            raise ValueError(f"a column is of several types: {schema}")
        return _arrow_type(kinds[0]) if kinds else pa.null()
    if isinstance(schema, str):
        return _PLAIN_TYPES.get(schema) or _unknown_type(schema)
    if schema.get("logicalType") == "decimal":
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    if schema.get("logicalType") in _LOGICAL_TYPES:
        return _LOGICAL_TYPES[schema["logicalType"]]
    return _nested_type(schema)


def _nested_type(schema: dict[str, Any]) -> pa.DataType:
    kind = schema["type"]
    if kind == "array":
        return pa.list_(_arrow_type(schema["items"]))
    if kind == "map":
        return pa.map_(pa.string(), _arrow_type(schema["values"]))
    if kind == "record":
        return pa.struct([(field["name"], _arrow_type(field["type"])) for field in schema["fields"]])
    return _arrow_type(kind)


def _unknown_type(name: str) -> pa.DataType:
    raise ValueError(f"`{name}` is no type that a column can have")
