"""What is asked of the server for each column, so that its rows come as the decoder of the binlog hands them over (`column_values`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ingestion.capture.binlog.events import Row
from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn

_K = ColumnKind
_AS_TEXT = frozenset((_K.DECIMAL, _K.DATE, _K.DATETIME, _K.TIME))
_AS_BYTES = frozenset((_K.VARCHAR, _K.STRING, _K.BLOB))
_LABELLED = frozenset((_K.ENUM, _K.SET))


def select_list(columns: Sequence[MappedColumn]) -> str:
    """One expression for each, in order."""
    return ", ".join(_expression(column) for column in columns)


def row_of(columns: Sequence[MappedColumn], values: Sequence[Any]) -> Row:
    return {column.name: _value(column, value) for column, value in zip(columns, values, strict=True)}


def quoted(name: str) -> str:
    """In a text of SQLAlchemy, which takes a word behind a colon for a parameter."""
    escaped = name.replace("`", "``").replace(":", r"\:")
    return f"`{escaped}`"


def _expression(column: MappedColumn) -> str:
    name = quoted(column.name)
    if column.kind in _AS_TEXT:
        return f"CAST({name} AS CHAR)"
    if column.kind is _K.TIMESTAMP:
        return f"CAST(UNIX_TIMESTAMP({name}) AS CHAR)"  # whatever the session's zone is
    if column.kind is _K.FLOAT:
        return f"CAST({name} AS DOUBLE)"  # a FLOAT is written with six digits, and has more
    if column.kind is _K.BIT:
        return f"{name} + 0"
    if column.kind in _AS_BYTES | _LABELLED:
        return f"CAST({name} AS BINARY)"  # in the character set of the column, whatever the connection's is
    return name


def _value(column: MappedColumn, value: Any) -> Any:
    if value is None:
        return None
    if column.kind in _AS_BYTES:
        content = bytes(value)
        return content if column.is_binary else content.decode(errors="surrogateescape")
    if column.kind is _K.BIT:
        return int(value)
    if column.kind in _LABELLED:
        return bytes(value)
    if column.kind is _K.LONGLONG and column.is_unsigned:
        return str(value)
    return value
