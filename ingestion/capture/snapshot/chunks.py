"""Reads a table chunk by chunk in the order of its key, each as it was after one transaction, without a lock.

A chunk is read in a transaction with a consistent snapshot, whose place in the binlog the server tells. So its rows lie between the changes of that
transaction and those of the next one (`reference_key_after`), whatever happened before and after.
"""

# ruff: noqa: S608  # names are quoted, and values are bound

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ingestion.capture.binlog.events import BinlogError, Row
from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn, TableMap
from ingestion.capture.snapshot.select_list import quoted, row_of, select_list

_K = ColumnKind
Key = tuple[Any, ...]
"""Of a row, as the driver hands it over."""
_SESSION = f"SET time_zone = '+00:00', sql_mode = '', sql_select_limit = {2**64 - 1}"
"""Whatever the server's are: its modes may pad texts, or make empty ones null, and a limit leaves out rows."""
_AS_NUMBER = frozenset((_K.ENUM, _K.SET, _K.BIT))


@dataclass(frozen=True)
class SnapshotChunk:
    """`sequence`: of the transaction after which the rows were so. `last_key`: after which the next chunk begins; None: this was the last."""

    rows: Sequence[Row]
    sequence: int
    last_key: Key | None


def read_chunk(
    connection: sa.Connection,
    table: TableMap,
    columns: Sequence[MappedColumn],
    key: Sequence[str],
    *,
    after: Key | None,
    rows: int,
) -> SnapshotChunk:
    """`columns`: those that are wanted. `key`: columns that no two rows share, in order; `after`: values of them as an earlier chunk has them. Raises
    BinlogError where the server does not tell the place."""
    keys = _key_expressions(table, key)
    order = f"ORDER BY {', '.join(keys)} LIMIT {int(rows)}"
    selected, sequence = _select(connection, table, [*keys, select_list(columns)], _within(keys, after, None), order)
    values = [row_of(columns, row[len(keys) :]) for row in selected]
    last_key = tuple(selected[-1][: len(keys)]) if len(selected) == rows else None
    return SnapshotChunk(values, sequence, last_key)


def read_range(
    connection: sa.Connection,
    table: TableMap,
    columns: Sequence[MappedColumn],
    key: Sequence[str],
    *,
    after: Key | None,
    upto: Key | None,
) -> SnapshotChunk:
    """All rows behind `after`, as far as `upto`, which is in it; None: to the end. Otherwise as `read_chunk`."""
    keys = _key_expressions(table, key)
    order = f"ORDER BY {', '.join(keys)}"
    selected, sequence = _select(connection, table, [select_list(columns)], _within(keys, after, upto), order)
    return SnapshotChunk([row_of(columns, row) for row in selected], sequence, upto)


def read_keys(
    connection: sa.Connection,
    table: TableMap,
    columns: Sequence[MappedColumn],
    key: Sequence[str],
    keys: Sequence[Key],
) -> SnapshotChunk:
    """The rows of these keys that are there: `key` names the columns, in any order of the table's, as values of which each is given. Otherwise as
    `read_chunk`."""
    parameters = {f"k{row}_{place}": value for row, each in enumerate(keys) for place, value in enumerate(each)}
    alternatives = [
        " AND ".join(f"{quoted(name)} = :k{row}_{place}" for place, name in enumerate(key)) for row in range(len(keys))
    ]
    within = (" OR ".join(f"({each})" for each in alternatives), parameters)
    selected, sequence = _select(connection, table, [select_list(columns)], within, "")
    return SnapshotChunk([row_of(columns, row) for row in selected], sequence, None)


def end_of_chunk(
    connection: sa.Connection, table: TableMap, key: Sequence[str], *, after: Key | None, rows: int
) -> Key | None:
    """The key of the last of the next `rows` rows, whatever a key is made of and how it is ordered; None: there are not so many."""
    keys = _key_expressions(table, key)
    order = f"ORDER BY {', '.join(keys)} LIMIT 1 OFFSET {int(rows) - 1}"
    selected, _ = _select(connection, table, keys, _within(keys, after, None), order)
    return tuple(selected[0]) if selected else None


def _select(
    connection: sa.Connection,
    table: TableMap,
    expressions: Sequence[str],
    within: tuple[str, dict[str, Any]],
    order: str,
) -> tuple[Sequence[sa.Row[Any]], int]:
    """The rows, and the number of the transaction after which they were so."""
    where, parameters = within
    query = (
        f"SELECT {', '.join(expressions)} FROM {quoted(table.database)}.{quoted(table.table)} "
        f"{f'WHERE {where}' if where else ''} {order}"
    )
    with consistent_snapshot(connection) as sequence:
        return connection.execute(sa.text(query), parameters).fetchall(), sequence


@contextmanager
def consistent_snapshot(connection: sa.Connection) -> Iterator[int]:
    """What is read in it was so after the transaction whose number it yields. Raises BinlogError where the server does not tell the place."""
    connection.exec_driver_sql(_SESSION)
    connection.exec_driver_sql("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    try:
        yield _sequence(connection)
    finally:
        connection.exec_driver_sql("ROLLBACK")


def _sequence(connection: sa.Connection) -> int:
    status = {
        str(name).lower(): str(value)
        for name, value in connection.exec_driver_sql("SHOW SESSION STATUS LIKE 'binlog_snapshot_%%'")
    }
    place = (status.get("binlog_snapshot_file"), status.get("binlog_snapshot_position"))
    if not all(place):
        raise BinlogError("The server does not tell the place of a snapshot in its binlog: is `log_bin` on?")
    gtid = connection.execute(
        sa.text("SELECT BINLOG_GTID_POS(:file, :place)"), {"file": place[0], "place": place[1]}
    ).scalar()
    return int(str(gtid).rpartition("-")[2]) if gtid else 0


def _key_expression(column: MappedColumn) -> str:
    """By which rows are ordered and compared alike: the server orders labels by number and compares them as texts, and a FLOAT has more digits than it
    shows."""
    name = quoted(column.name)
    if column.kind in _AS_NUMBER:
        return f"{name} + 0"
    return f"CAST({name} AS DOUBLE)" if column.kind is _K.FLOAT else name


def _key_expressions(table: TableMap, key: Sequence[str]) -> list[str]:
    return [_key_expression(next(column for column in table.columns if column.name == name)) for name in key]


def _within(keys: Sequence[str], after: Key | None, upto: Key | None) -> tuple[str, dict[str, Any]]:
    """A condition and its parameters: greater than the one, and not greater than the other."""
    bounds = [(">", ">", "a", after), ("<", "<=", "u", upto)]
    conditions = [_beside(keys, *bound[:3]) for bound in bounds if bound[3] is not None]
    parameters = {f"{name}{place}": value for _, _, name, values in bounds for place, value in enumerate(values or ())}
    return " AND ".join(conditions), parameters


def _beside(keys: Sequence[str], sign: str, last_sign: str, name: str) -> str:
    """In the first part of the key, or in the second where the first is equal, and so on. (Servers find no index for a comparison of lists.)"""
    alternatives = []
    for last in range(len(keys)):
        equal = [f"{key} = :{name}{place}" for place, key in enumerate(keys[:last])]
        comparison = last_sign if last == len(keys) - 1 else sign
        alternatives.append(" AND ".join([*equal, f"{keys[last]} {comparison} :{name}{last}"]))
    return f"({' OR '.join(f'({each})' for each in alternatives)})"
