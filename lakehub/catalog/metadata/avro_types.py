"""What a type of Avro is among the types that Lakehub tells apart."""

from __future__ import annotations

from typing import Any

from lakehub.catalog.metadata import ColumnType

_TYPES = {
    "string": ColumnType.STRING,
    "int": ColumnType.INTEGER,
    "long": ColumnType.INTEGER,
    "float": ColumnType.FLOAT,
    "double": ColumnType.FLOAT,
    "boolean": ColumnType.BOOLEAN,
    "bytes": ColumnType.BINARY,
    "date": ColumnType.DATE,
    "timestamp-millis": ColumnType.TIMESTAMP,
    "timestamp-micros": ColumnType.TIMESTAMP,
    "decimal": ColumnType.DECIMAL,
    "time-millis": ColumnType.TIME,
    "time-micros": ColumnType.TIME,
    "record": ColumnType.STRUCT,
    "array": ColumnType.ARRAY,
    "map": ColumnType.MAP,
}


def avro_column_type(kind: Any) -> tuple[ColumnType, bool]:
    """(type, nullable) of an Avro field; a union with null is nullable."""
    if isinstance(kind, list):
        branches = [branch for branch in kind if branch != "null"]
        return (avro_column_type(branches[0])[0] if len(branches) == 1 else ColumnType.OTHER), "null" in kind
    if isinstance(kind, dict):
        kind = kind.get("logicalType", kind["type"])
    return _TYPES.get(kind, ColumnType.OTHER), False
