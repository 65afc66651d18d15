"""A table as the server's catalog defines it now, in the words of the binlog: so a row that is read and a row that is captured are one.

Labels of enumerations and sets are not among them: the catalog has neither all characters nor all signs of them, so their rows are read as texts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

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
_BINARY_COLLATION, _UNKNOWN_COLLATION = 63, 0
_OLD_KINDS = {_K.TIMESTAMP: _K.OLD_TIMESTAMP, _K.TIME: _K.OLD_TIME, _K.DATETIME: _K.OLD_DATETIME}
_TABLES: sa.BindParameter[object] = sa.bindparam("tables", expanding=True)
_COLUMNS = sa.text(
    "SELECT table_name, column_name, data_type, column_type, numeric_precision, numeric_scale, datetime_precision, character_octet_length, collation_name "
    "FROM information_schema.columns WHERE table_schema = :database AND table_name IN :tables ORDER BY table_name, ordinal_position"
).bindparams(_TABLES)
_KEYS = sa.text(
    "SELECT table_name, column_name FROM information_schema.key_column_usage "
    "WHERE table_schema = :database AND table_name IN :tables AND constraint_name = 'PRIMARY' ORDER BY table_name, ordinal_position"
).bindparams(_TABLES)
_COLLATIONS = sa.text(
    "SELECT collation_name, id, character_set_name FROM information_schema.collations WHERE id IS NOT NULL"
)
_APPLICABLE = sa.text("SELECT * FROM information_schema.collation_character_set_applicability")


class NoSuchTable(LookupError):
    """The account does not see a table by that name."""


def named_table(text: str, database: str) -> tuple[str, str]:
    """Its database and its name: `text` is `name`, of `database`, or `database.name`."""
    named, _, name = text.rpartition(".")
    return named or database, name


def read_charsets(connection: sa.Connection) -> dict[int, str]:
    """By the number of a collation."""
    return dict(_collations(connection).values())


def _collations(connection: sa.Connection) -> dict[str, tuple[int, str]]:
    """By name the number and the character set. From 10.10 on the list of collations lacks those that several character sets have, such as uca1400_ai_ci."""
    known = {str(name): (int(number), str(charset)) for name, number, charset in connection.execute(_COLLATIONS)}
    for each in connection.execute(_APPLICABLE).mappings():
        row = {name.lower(): value for name, value in each.items()}
        if row.get("full_collation_name") and row["id"]:
            known[str(row["full_collation_name"])] = (int(row["id"]), str(row["character_set_name"]))
    return known


def read_definition(connection: sa.Connection, database: str, table: str) -> TableMap:
    """Raises NoSuchTable."""
    definitions = read_definitions(connection, database, [table])
    definition = definitions.get(table) or next(iter(definitions.values()), None)
    if definition is None:
        raise NoSuchTable(f"There is no table `{database}`.`{table}` that the account may read.")
    return replace(definition, table=table)


def read_definitions(connection: sa.Connection, database: str, tables: Sequence[str]) -> dict[str, TableMap]:
    """By table as the server writes it, of those that the account sees; in as many queries for many as for one. Names that differ in capital letters only may come too."""
    named = {"database": database, "tables": [*tables]}
    collations = {name: number for name, (number, _) in _collations(connection).items()}
    columns, keys = defaultdict[str, list[dict[str, Any]]](list), defaultdict[str, list[str]](list)
    for each in connection.execute(_COLUMNS, named).mappings():
        row = {name.lower(): value for name, value in each.items()}
        columns[row["table_name"]].append(row)
    for table, column in connection.execute(_KEYS, named):
        keys[table].append(str(column))
    return {
        table: TableMap(database, table, tuple(_columns(rows, collations)), tuple(keys[table]))
        for table, rows in columns.items()
    }


def _columns(rows: list[dict[str, Any]], collations: Mapping[str, int]) -> Iterator[MappedColumn]:
    for row in rows:
        kind = _kind(row["data_type"], row["column_type"])
        name = row["collation_name"]
        collation = _BINARY_COLLATION if name is None else collations.get(name, _UNKNOWN_COLLATION)
        yield MappedColumn(
            row["column_name"],
            kind,
            _metadata(kind, row),
            "unsigned" in row["column_type"] or kind is _K.YEAR,
            collation,
        )


def _kind(data_type: str, column_type: str) -> ColumnKind:
    """The server says behind a type how it is stored."""
    kind = _KINDS.get(data_type, _K.GEOMETRY)
    if column_type.endswith("COMPRESSED*/"):
        return _K.COMPRESSED_BLOB if kind is _K.BLOB else _K.COMPRESSED_VARCHAR
    return _OLD_KINDS[kind] if column_type.endswith("/* mariadb-5.3 */") else kind


def _metadata(kind: ColumnKind, row: Mapping[str, Any]) -> tuple[int, ...]:
    match kind:
        case _K.DECIMAL:
            return (int(row["numeric_precision"]), int(row["numeric_scale"]))
        case _K.BIT:
            bits = int(row["numeric_precision"])
            return (bits % 8, bits // 8)
        case _K.STRING:
            return (int(kind), _BYTES_OF.get(row["data_type"]) or int(row["character_octet_length"] or 0))
        case _K.VARCHAR:
            length = int(row["character_octet_length"])
            return (length % 256, length // 256)
        case _K.BLOB:
            return ((int(row["character_octet_length"]).bit_length() + 7) // 8,)
        case _K.DATETIME | _K.TIMESTAMP | _K.TIME:
            return (int(row["datetime_precision"]),)
    return ()
