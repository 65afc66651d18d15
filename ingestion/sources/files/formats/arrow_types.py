"""The column type that holds a type of Arrow."""

from __future__ import annotations

import pyarrow as pa

from ingestion.domain.schema import Schema, SchemaColumn

_MAX_PRECISION = 38
"""Of the lake's decimals; wider ones are kept as text."""


def schema_of(schema: pa.Schema) -> Schema:
    return Schema(tuple(SchemaColumn(field.name, type_name_of(field.type)) for field in schema))


def type_name_of(arrow: pa.DataType) -> str:
    """The name of the column type that holds an Arrow type; what has no twin (lists, structures, times) is kept as JSON text."""
    if pa.types.is_decimal(arrow) and arrow.precision <= _MAX_PRECISION and 0 <= arrow.scale <= arrow.precision:
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
