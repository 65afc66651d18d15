"""A table as the server's catalog defines it now, in the words of the binlog: so a row that is read and a row that is captured are one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from ingestion.capture.binlog.charsets import codec_of
from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn, TableMap

_K = ColumnKind
_KINDS: Mapping[str, ColumnKind] = {
    "tinyint": _K.TINY,
    "smallint": _K.SHORT,
    "mediumint": _K.INT24,
    "int": _K.LONG,
    "bigint": _K.LONGLONG,
    "float": _K.FLOAT,
    "double": _K.DOUBLE,
    "decimal": _K.DECIMAL,
    "bit": _K.BIT,
    "year": _K.YEAR,
    "date": _K.DATE,
    "datetime": _K.DATETIME,
    "timestamp": _K.TIMESTAMP,
    "time": _K.TIME,
    "enum": _K.ENUM,
    "set": _K.SET,
    "varchar": _K.VARCHAR,
    "varbinary": _K.VARCHAR,
    **dict.fromkeys(("char", "binary", "uuid", "inet6", "inet4"), _K.STRING),
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), _K.BLOB),
    **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob"), _K.BLOB),
}
_BYTES_OF = {"uuid": 16, "inet6": 16, "inet4": 4}
_LABEL = re.compile(r"'((?:[^']|'')*)'")
_BINARY_COLLATION = 63
_COLUMNS = sa.text(
    "SELECT column_name, data_type, column_type, numeric_precision, numeric_scale, character_octet_length, character_set_name, collation_name "
    "FROM information_schema.columns WHERE table_schema = :database AND table_name = :table ORDER BY ordinal_position"
)
_KEY = sa.text(
    "SELECT column_name FROM information_schema.key_column_usage "
    "WHERE table_schema = :database AND table_name = :table AND constraint_name = 'PRIMARY' ORDER BY ordinal_position"
)
_COLLATIONS = sa.text("SELECT collation_name, id FROM information_schema.collations WHERE id IS NOT NULL")
_CHARSETS = sa.text("SELECT id, character_set_name FROM information_schema.collations WHERE id IS NOT NULL")


class NoSuchTable(LookupError):
    """The account does not see a table by that name."""


def named_table(text: str, database: str) -> tuple[str, str]:
    """Its database and its name: `text` is `name`, of `database`, or `database.name`."""
    named, _, name = text.rpartition(".")
    return named or database, name


def read_charsets(connection: sa.Connection) -> dict[int, str]:
    """By the number of a collation."""
    return {int(number): str(name) for number, name in connection.execute(_CHARSETS)}


def read_definition(connection: sa.Connection, database: str, table: str) -> TableMap:
    """Raises NoSuchTable."""
    named = {"database": database, "table": table}
    collations = {str(name): int(number) for name, number in connection.execute(_COLLATIONS)}
    rows = [
        {name.lower(): value for name, value in row.items()} for row in connection.execute(_COLUMNS, named).mappings()
    ]
    if not rows:
        raise NoSuchTable(f"There is no table `{database}`.`{table}` that the account may read.")
    key = tuple(str(name) for name in connection.execute(_KEY, named).scalars())
    return TableMap(database, table, tuple(_columns(rows, collations)), key)


def _columns(rows: list[dict[str, Any]], collations: Mapping[str, int]) -> Iterator[MappedColumn]:
    for row in rows:
        kind = _KINDS.get(row["data_type"], _K.GEOMETRY)
        collation = collations.get(row["collation_name"] or "", _BINARY_COLLATION)
        yield MappedColumn(
            row["column_name"],
            kind,
            _metadata(kind, row),
            "unsigned" in row["column_type"],
            collation,
            _labels(kind, row),
        )


def _metadata(kind: ColumnKind, row: Mapping[str, Any]) -> tuple[int, ...]:
    match kind:
        case _K.DECIMAL:
            return (int(row["numeric_precision"]), int(row["numeric_scale"]))
        case _K.BIT:
            bits = int(row["numeric_precision"])
            return (bits % 8, bits // 8)
        case _K.STRING:
            return (int(kind), _BYTES_OF.get(row["data_type"]) or int(row["character_octet_length"] or 0))
    return ()


def _labels(kind: ColumnKind, row: Mapping[str, Any]) -> tuple[bytes, ...]:
    """In the character set of the column, as the binlog has them."""
    if kind not in (_K.ENUM, _K.SET):
        return ()
    codec = codec_of(row["character_set_name"] or "utf8mb4") or "utf-8"
    return tuple(label.replace("''", "'").encode(codec) for label in _LABEL.findall(row["column_type"]))
