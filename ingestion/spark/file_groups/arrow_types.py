"""The types of the lake as Arrow has them."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from ingestion.domain.column_types import ArrayOf, ColumnType, MapOf, Plain, StructOf, parse_type

ARROW_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


@lru_cache(maxsize=4096)
def arrow_type(text: str) -> pa.DataType:
    return arrow_type_of(parse_type(text))


def arrow_type_of(type_: ColumnType) -> pa.DataType:
    match type_:
        case ArrayOf(element):
            return pa.list_(arrow_type_of(element))
        case MapOf(value):
            return pa.map_(pa.string(), arrow_type_of(value))
        case StructOf(fields):
            return pa.struct([(name, arrow_type_of(field)) for name, field in fields])
        case Plain(name):
            return ARROW_TYPES[name] if type_.decimal is None else pa.decimal128(*type_.decimal)
