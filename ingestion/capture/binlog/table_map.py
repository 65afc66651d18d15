"""A table as the binlog describes it before rows of it: its columns with names, types, character sets and labels at the time of the change.

That needs `binlog_row_metadata=FULL`. The layout is that of MySQL's `Table_map_event`; MariaDB writes the same, with a few types of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

_BINARY_CHARSET = 63
_ID_BYTES, _FLAG_BYTES = 6, 2


class ColumnKind(IntEnum):
    """The code of a type in the binlog."""

    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    OLD_TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    OLD_TIME = 11
    OLD_DATETIME = 12
    YEAR = 13
    VARCHAR = 15
    BIT = 16
    TIMESTAMP = 17
    DATETIME = 18
    TIME = 19
    COMPRESSED_BLOB = 140
    COMPRESSED_VARCHAR = 141
    JSON = 245
    DECIMAL = 246
    ENUM = 247
    SET = 248
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


_K = ColumnKind
_NUMBERS = {_K.TINY, _K.SHORT, _K.LONG, _K.FLOAT, _K.DOUBLE, _K.LONGLONG, _K.INT24, _K.YEAR, _K.DECIMAL}
_WITH_CHARSET = {
    *(_K.VARCHAR, _K.VAR_STRING, _K.STRING, _K.BLOB, _K.GEOMETRY),
    *(_K.COMPRESSED_BLOB, _K.COMPRESSED_VARCHAR),
}
_METADATA_BYTES = {
    **dict.fromkeys((_K.FLOAT, _K.DOUBLE, _K.BLOB, _K.GEOMETRY, _K.JSON, _K.COMPRESSED_BLOB), 1),
    **dict.fromkeys((_K.TIMESTAMP, _K.DATETIME, _K.TIME), 1),
    **dict.fromkeys(
        (_K.VARCHAR, _K.BIT, _K.DECIMAL, _K.ENUM, _K.SET, _K.VAR_STRING, _K.STRING, _K.COMPRESSED_VARCHAR), 2
    ),
}


class _Field(IntEnum):
    SIGNEDNESS = 1
    DEFAULT_CHARSET = 2
    COLUMN_CHARSET = 3
    COLUMN_NAME = 4
    SET_LABELS = 5
    ENUM_LABELS = 6
    PRIMARY_KEY = 8
    PRIMARY_KEY_WITH_PREFIX = 9
    LABEL_DEFAULT_CHARSET = 10
    LABEL_CHARSET = 11


class UnreadableTableMap(ValueError):
    """The description of a table is not complete, or has a type that nobody knows."""


@dataclass(frozen=True)
class MappedColumn:
    """`collation`: the number of a text's, 63 for bytes. `labels`: of an enumeration or a set, as bytes of its character set. `metadata`: by kind,
    such as (precision, scale)."""

    name: str
    kind: ColumnKind
    metadata: tuple[int, ...] = ()
    is_unsigned: bool = False
    collation: int = _BINARY_CHARSET
    labels: tuple[bytes, ...] = ()

    @property
    def is_binary(self) -> bool:
        return self.collation == _BINARY_CHARSET


@dataclass(frozen=True)
class TableMap:
    """`primary_key`: the names of its columns in order, none if there is none."""

    database: str
    table: str
    columns: tuple[MappedColumn, ...]
    primary_key: tuple[str, ...]


def table_id(body: bytes) -> int:
    """Which rows events name; it stands for another table after each change of its definition."""
    return int.from_bytes(body[:_ID_BYTES], "little")


def table_name(body: bytes) -> tuple[str, str]:
    """The database and the table, without the rest: most tables are none that anyone has asked for."""
    reader = _Reader(body, _ID_BYTES + _FLAG_BYTES)
    return reader.named(), reader.named()


def read_table_map(body: bytes) -> TableMap:
    """`body`: the event without header and checksum. Raises UnreadableTableMap."""
    reader = _Reader(body, _ID_BYTES + _FLAG_BYTES)
    database, table = reader.named(), reader.named()
    kinds = [_kind_of(code, f"{database}.{table}") for code in reader.take(reader.number())]
    metadata = _Reader(reader.take(reader.number()))
    columns = [_typed(kind, metadata) for kind in kinds]
    reader.take((len(kinds) + 7) // 8)
    fields = dict(reader.fields())
    if _Field.COLUMN_NAME not in fields:
        raise UnreadableTableMap(
            f"The binlog has no column names for {database}.{table}. Set binlog_row_metadata=FULL on the server; "
            "what was written before stays as it is, so capture begins after that."
        )
    names = [*_Reader(fields[_Field.COLUMN_NAME]).texts()]
    described = _describe(columns, fields)
    mapped = tuple(MappedColumn(name, *column) for name, column in zip(names, described, strict=True))
    return TableMap(database, table, mapped, tuple(names[place] for place in _primary_key(fields)))


def _kind_of(code: int, table: str) -> ColumnKind:
    try:
        return ColumnKind(code)
    except ValueError:
        raise UnreadableTableMap(
            f"{table} has a column of the binlog's type {code}, which nobody knows here."
        ) from None


def _typed(kind: ColumnKind, metadata: _Reader) -> tuple[ColumnKind, tuple[int, ...]]:
    """An enumeration and a set are written as texts whose metadata says what they are; so are the lengths of long texts."""
    facts = tuple(metadata.take(_METADATA_BYTES.get(kind, 0)))
    if kind is _K.STRING and facts[0] in (_K.ENUM, _K.SET):
        return ColumnKind(facts[0]), facts
    return kind, facts


_Described = tuple[ColumnKind, tuple[int, ...], bool, int, tuple[bytes, ...]]


def _describe(columns: list[tuple[ColumnKind, tuple[int, ...]]], fields: dict[int, bytes]) -> Iterator[_Described]:
    """Each list of a table map is of the columns that it can be about only."""
    kinds = [kind for kind, _ in columns]
    signs = _signs(fields.get(_Field.SIGNEDNESS, b""))
    texts = _collations(fields, _Field.DEFAULT_CHARSET, _Field.COLUMN_CHARSET, sum(k in _WITH_CHARSET for k in kinds))
    labelled = sum(kind in (_K.ENUM, _K.SET) for kind in kinds)
    of_labels = _collations(fields, _Field.LABEL_DEFAULT_CHARSET, _Field.LABEL_CHARSET, labelled)
    labels = {
        _K.SET: _label_lists(fields.get(_Field.SET_LABELS, b"")),
        _K.ENUM: _label_lists(fields.get(_Field.ENUM_LABELS, b"")),
    }
    for kind, metadata in columns:
        is_unsigned = kind in _NUMBERS and next(signs, False)
        if kind in labels:
            yield kind, metadata, is_unsigned, next(of_labels, _BINARY_CHARSET), next(labels[kind], ())
        else:
            yield kind, metadata, is_unsigned, next(texts) if kind in _WITH_CHARSET else _BINARY_CHARSET, ()


def _signs(bits: bytes) -> Iterator[bool]:
    return (bool(byte & 0x80 >> place) for byte in bits for place in range(8))


def _collations(fields: dict[int, bytes], default: _Field, each: _Field, columns: int) -> Iterator[int]:
    """One for each column with a character set: listed, or a default with the exceptions by place."""
    if each in fields:
        return _Reader(fields[each]).numbers()
    usual, *exceptions = [*_Reader(fields.get(default, bytes([_BINARY_CHARSET]))).numbers()]
    unusual = dict(zip(exceptions[::2], exceptions[1::2], strict=True))
    return iter([unusual.get(place, usual) for place in range(columns)])


def _label_lists(content: bytes) -> Iterator[tuple[bytes, ...]]:
    reader = _Reader(content)
    while reader.is_more:
        yield tuple(reader.take(reader.number()) for _ in range(reader.number()))


def _primary_key(fields: dict[int, bytes]) -> list[int]:
    """Where a part of a column is the key, the whole column is a key too: two rows that differ in the part differ in the whole."""
    if _Field.PRIMARY_KEY_WITH_PREFIX in fields:
        return [*_Reader(fields[_Field.PRIMARY_KEY_WITH_PREFIX]).numbers()][::2]
    return [*_Reader(fields.get(_Field.PRIMARY_KEY, b"")).numbers()]


class _Reader:
    """Bytes from a place on. Raises UnreadableTableMap where they end too soon."""

    def __init__(self, content: bytes, place: int = 0) -> None:
        self._content, self._place = content, place

    @property
    def is_more(self) -> bool:
        return self._place < len(self._content)

    def take(self, length: int) -> bytes:
        taken = self._content[self._place : self._place + length]
        if len(taken) < length:
            raise UnreadableTableMap(f"The description of a table ends after {len(self._content)} bytes, too soon.")
        self._place += length
        return taken

    def number(self) -> int:
        """In one byte, or in the 2, 3 or 8 bytes that follow it."""
        first = self.take(1)[0]
        length = {252: 2, 253: 3, 254: 8}.get(first)
        return first if length is None else int.from_bytes(self.take(length), "little")

    def numbers(self) -> Iterator[int]:
        while self.is_more:
            yield self.number()

    def texts(self) -> Iterator[str]:
        while self.is_more:
            yield self.take(self.number()).decode()

    def named(self) -> str:
        """A name of at most 255 bytes, and a zero byte."""
        name = self.take(self.take(1)[0]).decode()
        self.take(1)
        return name

    def fields(self) -> Iterator[tuple[int, bytes]]:
        while self.is_more:
            number = self.take(1)[0]
            yield number, self.take(self.number())
