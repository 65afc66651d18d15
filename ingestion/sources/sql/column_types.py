"""The column type that holds a type of a database."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from ingestion.domain.column_types import MAX_PRECISION, STRING, ArrayOf, ColumnType, Plain, in_lake
from lakehub.source_databases.binary_types import BINARY_TYPES

SqlType = sa.types.TypeEngine[Any]
_UNSIGNED_LONG = Plain("decimal(20,0)")
_TYPES: tuple[tuple[type[SqlType], Plain], ...] = (
    (sa.Boolean, Plain("boolean")),
    (sa.SmallInteger, Plain("int")),
    (sa.Integer, Plain("long")),
    (sa.Float, Plain("double")),
    (sa.DateTime, Plain("timestamp")),
    (sa.Date, Plain("date")),
    *((kind, Plain("binary")) for kind in BINARY_TYPES),
)


_TEXTS = frozenset(
    {"string", "text", "unicode", "unicode_text", "CHAR", "NCHAR", "VARCHAR", "NVARCHAR", "TEXT", "CLOB"}
    | {"TINYTEXT", "MEDIUMTEXT", "LONGTEXT"}
)
"""What SQLAlchemy calls the types that are texts to the database itself, and not only to its driver."""


def is_compared_as_read(sql_type: SqlType) -> bool:
    """Of a type that is a text in the lake: does the database order its values as it compares them with what its driver makes of them?

    An enumeration is ordered by rank and a set by number, and PostgreSQL compares neither, nor an amount of money or bits, with a text;
    a text without case is compared with one that has it.
    """
    if isinstance(sql_type, sa.Time):
        return not sql_type.timezone
    return isinstance(sql_type, sa.Uuid) or sql_type.__visit_name__ in _TEXTS


def type_name_of(sql_type: SqlType) -> str:
    """What has no twin (JSON, times of day, intervals) is kept as text."""
    return str(in_lake(_type_of(sql_type)))


def _type_of(sql_type: SqlType) -> ColumnType:
    if isinstance(sql_type, sa.ARRAY):
        return _array_of(sql_type)
    if isinstance(sql_type, sa.Numeric) and not isinstance(sql_type, sa.Float):
        is_held = sql_type.precision and sql_type.precision <= MAX_PRECISION
        return Plain(f"decimal({sql_type.precision},{sql_type.scale or 0})") if is_held else Plain("double")
    if isinstance(sql_type, sa.BigInteger) and getattr(sql_type, "unsigned", False):  # MySQL's, up to 2^64 - 1
        return _UNSIGNED_LONG
    return next((column_type for kind, column_type in _TYPES if isinstance(sql_type, kind)), STRING)


def _array_of(sql_type: sa.ARRAY[Any]) -> ColumnType:
    """PostgreSQL does not say how deep its arrays are: a list within one is a misfit."""
    nested = _type_of(sql_type.item_type)
    for _ in range(sql_type.dimensions or 1):
        nested = ArrayOf(nested)
    return nested
