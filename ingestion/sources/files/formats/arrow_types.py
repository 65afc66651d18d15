"""The column type that holds a type of Arrow."""

from __future__ import annotations

import pyarrow as pa

from ingestion.domain.column_types import (
    MAX_PRECISION,
    STRING,
    ArrayOf,
    ColumnType,
    MapOf,
    Plain,
    in_lake,
    struct_in_lake,
)
from ingestion.domain.schema import Schema, SchemaColumn

_MAX_WALKED = 100
"""Deeper than any type of the lake, and far from where Python gives up."""


def schema_of(schema: pa.Schema) -> Schema:
    return Schema(tuple(SchemaColumn(field.name, type_name_of(field.type)) for field in schema))


def type_name_of(arrow: pa.DataType) -> str:
    """The text of the column type that holds an Arrow type; what has no twin (times of day, maps by number) is kept as text."""
    return str(in_lake(_type_of(arrow, 1)))


def _type_of(arrow: pa.DataType, depth: int) -> ColumnType:
    if not pa.types.is_nested(arrow):
        return _plain(arrow)
    if depth >= _MAX_WALKED:
        return STRING
    if pa.types.is_struct(arrow):
        names = [field.name for field in arrow]
        fields = {field.name: _type_of(field.type, depth + 1) for field in arrow}
        return struct_in_lake(fields) if len(fields) == len(names) else STRING
    if pa.types.is_map(arrow):
        has_texts = pa.types.is_string(arrow.key_type) or pa.types.is_large_string(arrow.key_type)
        has_texts |= pa.types.is_dictionary(arrow.key_type) and pa.types.is_string(arrow.key_type.value_type)
        return MapOf(_type_of(arrow.item_type, depth + 1)) if has_texts else STRING
    is_list = pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow)
    return ArrayOf(_type_of(arrow.value_type, depth + 1)) if is_list else STRING


def _plain(arrow: pa.DataType) -> Plain:
    if pa.types.is_dictionary(arrow):
        return _plain(arrow.value_type)
    if pa.types.is_decimal(arrow) and arrow.precision <= MAX_PRECISION and 0 <= arrow.scale <= arrow.precision:
        return Plain(f"decimal({arrow.precision},{arrow.scale})")
    if pa.types.is_uint64(arrow):
        return Plain("decimal(20,0)")
    if pa.types.is_integer(arrow):
        return Plain("int" if arrow.bit_width < 32 or pa.types.is_int32(arrow) else "long")
    return Plain(next((name for matches, name in _TYPE_NAMES if matches(arrow)), "string"))


_TYPE_NAMES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_float64, "double"),
    (pa.types.is_floating, "float"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "timestamp"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_fixed_size_binary, "binary"),
)
