"""What the columns of a binlog are in the lake: their types, and their values from what the decoder of rows hands over.

The decoder (mysql-event-stream) says numbers as integers or texts, times as texts, labels as numbers (a table that is read: as bytes of their character set), and texts of any character set as if they were UTF-8,
with the bytes that are not as surrogates. A date that is none, such as 0000-00-00, is null in the lake, and is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from ingestion.capture.binlog.charsets import codec_of, decoded
from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn
from ingestion.domain.column_types import MAX_PRECISION

_K = ColumnKind
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROS_DIGITS = 6
_LONG_BITS = 63
_UTF8 = "utf-8"
ReadValue = Callable[[Any], Any]
"""What the lake has for a value that is not null."""


class UnfitColumn(ValueError):
    """A column that cannot be captured; the message says what to do."""


def lake_type_of(column: MappedColumn) -> str:
    """Raises UnfitColumn."""
    match column.kind:
        case _K.TINY | _K.SHORT | _K.INT24 | _K.YEAR:
            return "int"
        case _K.LONG:
            return "long" if column.is_unsigned else "int"
        case _K.LONGLONG:
            return "decimal(20,0)" if column.is_unsigned else "long"
        case _K.FLOAT:
            return "float"
        case _K.DOUBLE:
            return "double"
        case _K.DECIMAL:
            precision, scale = column.metadata
            return f"decimal({precision},{scale})" if precision <= MAX_PRECISION else "string"
        case _K.BIT:
            return "boolean" if _bits(column) == 1 else "long" if _bits(column) <= _LONG_BITS else "decimal(20,0)"
        case _K.DATE:
            return "date"
        case _K.DATETIME | _K.TIMESTAMP:
            return "timestamp"
        case _K.TIME | _K.ENUM | _K.SET:
            return "string"
        case _K.OLD_TIMESTAMP | _K.OLD_TIME | _K.OLD_DATETIME:
            raise UnfitColumn(
                f"`{column.name}` is stored as servers before MySQL 5.6 and MariaDB 10.0 did, which cannot be captured. Let the server write it anew, by "
                "`ALTER TABLE ... FORCE` with `mysql56_temporal_format` ON."
            )
        case _K.GEOMETRY | _K.JSON | _K.COMPRESSED_BLOB | _K.COMPRESSED_VARCHAR:
            raise UnfitColumn(
                f"`{column.name}` is a column of the binlog's type {column.kind.name}, which cannot be captured. Leave it out, load the table by its "
                "cursor column, or drop that column."
            )
    return "binary" if column.is_binary else "string"


def value_reader_of(column: MappedColumn, charsets: Mapping[int, str], no_dates: Counter[str]) -> ReadValue:
    """`charsets`: by the number of a collation. `no_dates`: by column, how many dates were none. Raises UnfitColumn; what it returns raises
    ValueError for a value that the column cannot have."""
    match column.kind:
        case _K.LONGLONG if column.is_unsigned:
            return Decimal
        case _K.DECIMAL:
            return Decimal if column.metadata[0] <= MAX_PRECISION else str
        case _K.BIT:
            return bool if _bits(column) == 1 else int if _bits(column) <= _LONG_BITS else Decimal
        case _K.DATE | _K.DATETIME | _K.TIMESTAMP:
            return _dates(column, no_dates)
        case _K.ENUM | _K.SET:
            return _labels(column, _codec(column, charsets))
        case _K.VARCHAR | _K.VAR_STRING | _K.STRING | _K.BLOB:
            return _binaries(column) if column.is_binary else _texts(_codec(column, charsets))
    return _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def _bits(column: MappedColumn) -> int:
    rest, whole_bytes = column.metadata
    return whole_bytes * 8 + rest


def _codec(column: MappedColumn, charsets: Mapping[int, str]) -> str:
    charset = charsets.get(column.collation, f"of the collation {column.collation}")
    codec = codec_of(charset)
    if codec is None:
        raise UnfitColumn(
            f"`{column.name}` has the character set {charset}, which Python cannot read. Convert the column to utf8mb4, or capture the table without it."
        )
    return codec


def _texts(codec: str) -> ReadValue:
    """What is no text of its character set goes on as it is, and is rejected when it is encoded."""
    if codec == _UTF8:
        return _as_it_is

    def read(value: str) -> str:
        return decoded(value.encode(_UTF8, "surrogateescape"), codec)

    return read


def _binaries(column: MappedColumn) -> ReadValue:
    """The log leaves out the zero bytes at the end of a BINARY."""
    length = column.metadata[1] if column.kind is _K.STRING else 0

    def read(value: bytes) -> bytes:
        return value.ljust(length, b"\x00")

    return read


def _labels(column: MappedColumn, codec: str) -> ReadValue:
    try:
        labels = [decoded(label, codec) for label in column.labels]
    except UnicodeDecodeError as problem:
        raise UnfitColumn(
            f"A label of `{column.name}` is not a text of its character set ({problem}). Convert the column to utf8mb4."
        ) from problem

    def read_enumeration(value: int | bytes) -> str:
        if isinstance(value, bytes):
            return decoded(value, codec)
        if value > len(labels):
            raise ValueError(f"there is no label {value} of `{column.name}`: it has {len(labels)}")
        # 0 is the empty text that stands for a label that there was not.
        return labels[value - 1] if value else ""

    def read_set(value: int | str | bytes) -> str:
        if isinstance(value, bytes):
            return decoded(value, codec)
        chosen = int(value)
        if chosen >> len(labels):
            raise ValueError(f"there is no label {chosen.bit_length()} of `{column.name}`: it has {len(labels)}")
        return ",".join(label for place, label in enumerate(labels) if chosen >> place & 1)

    return read_enumeration if column.kind is _K.ENUM else read_set


def _dates(column: MappedColumn, no_dates: Counter[str]) -> ReadValue:
    read = {_K.DATE: _date, _K.DATETIME: _datetime, _K.TIMESTAMP: _timestamp}[column.kind]

    def read_or_count(value: str) -> date | None:
        moment = read(value)
        if moment is None:
            no_dates[column.name] += 1
        return moment

    return read_or_count


def _date(value: str) -> date | None:
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def _datetime(value: str) -> datetime | None:
    """Of no zone: it is kept as if it were in UTC."""
    try:
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    except ValueError:
        return None


def _timestamp(value: str) -> datetime | None:
    """Seconds since 1970; 0 stands for none."""
    seconds, _, fraction = value.partition(".")
    micros = int(fraction.ljust(_MICROS_DIGITS, "0") or 0)
    return None if seconds == "0" and not micros else _EPOCH + timedelta(seconds=int(seconds), microseconds=micros)
