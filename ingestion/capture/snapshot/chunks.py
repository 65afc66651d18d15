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
_AS_NUMBER = frozenset((_K.ENUM, _K.SET, _K.BIT))


@dataclass(frozen=True)
class SnapshotChunk:
    """`sequence`: of the transaction after which the rows were so. `last_key`: after which the next chunk begins; None: this was the last."""

    rows: Sequence[Row]
    sequence: int
    last_key: tuple[Any, ...] | None


def read_chunk(
    connection: sa.Connection,
    table: TableMap,
    columns: Sequence[MappedColumn],
    key: Sequence[str],
    *,
    after: tuple[Any, ...] | None,
    rows: int,
) -> SnapshotChunk:
    """`columns`: those that are wanted. `key`: columns that no two rows share, in order; `after`: values of them as an earlier chunk has them. Raises
    BinlogError where the server does not tell the place."""
    keys = [_key_expression(next(column for column in table.columns if column.name == name)) for name in key]
    where, parameters = ("", {}) if after is None else _beyond(keys, after)
    query = (
        f"SELECT {', '.join(keys)}, {select_list(columns)} FROM {quoted(table.database)}.{quoted(table.table)} "
        f"{where} ORDER BY {', '.join(keys)} LIMIT {int(rows)}"
    )
    with consistent_snapshot(connection) as sequence:
        selected = connection.execute(sa.text(query), parameters).fetchall()
    values = [row_of(columns, row[len(keys) :]) for row in selected]
    last_key = tuple(selected[-1][: len(keys)]) if len(selected) == rows else None
    return SnapshotChunk(values, sequence, last_key)


@contextmanager
def consistent_snapshot(connection: sa.Connection) -> Iterator[int]:
    """What is read in it was so after the transaction whose number it yields. Raises BinlogError where the server does not tell the place."""
    connection.exec_driver_sql("SET time_zone = '+00:00'")
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


def _beyond(keys: Sequence[str], after: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """Rows with a greater key: in its first part, or in the second where the first is equal, and so on. (Servers find no index for a comparison of lists.)"""
    alternatives = []
    for last in range(len(keys)):
        equal = [f"{key} = :k{place}" for place, key in enumerate(keys[:last])]
        alternatives.append(" AND ".join([*equal, f"{keys[last]} > :k{last}"]))
    return f"WHERE ({') OR ('.join(alternatives)})", {f"k{place}": value for place, value in enumerate(after)}
