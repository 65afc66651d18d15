"""A side in a database: its keys are streamed and written by Python. Only the columns of the key are asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from lakehub.kernel.suggest import did_you_mean
from quality.domain.bloom_keys import NoKey, key_bytes
from quality.engines.databases import kind_of
from quality.engines.scan import CannotRead, Limits, One, Part, SqlTable, Target
from quality.engines.sqlalchemy import connected, partition_value, reflected
from quality.exchanges.sides import Keys, Streamed

_BATCH = 10_000


def side(target: Target, part: Part, columns: Sequence[str], limits: Limits) -> Streamed:
    if not isinstance(target, SqlTable):
        raise CannotRead("This engine reads tables of databases; for a Hudi table or files choose engine=duckdb.")
    read = _Read(target, part, columns, limits)
    return Streamed(columns, read.count, read.batches)


class _Read:
    def __init__(self, target: SqlTable, part: Part, columns: Sequence[str], limits: Limits) -> None:
        self._target = target
        self._part = part
        self._columns = columns
        self._limits = limits

    def count(self) -> int:
        with self._opened() as (connection, table):
            rows = self._filtered(sa.select(sa.func.count()).select_from(table), table)
            return int(connection.execute(rows).scalar_one())

    def batches(self) -> Iterator[Keys]:
        """Streamed by a cursor of the server, where the database has one."""
        ends_at = time.monotonic() + self._limits.timeout.total_seconds()
        with self._opened() as (connection, table):
            wanted = self._filtered(sa.select(*(_column(table, name) for name in self._columns)), table)
            for rows in connection.execution_options(yield_per=_BATCH).execute(wanted).partitions():
                yield self._keys(rows)
                if time.monotonic() > ends_at:
                    raise CannotRead("the exchange took longer than its timeout")

    def _keys(self, rows: Sequence[sa.Row[Any]]) -> Keys:
        try:
            return [key_bytes(row, self._columns) for row in rows]
        except NoKey as unfit:
            raise CannotRead(str(unfit)) from unfit

    @contextmanager
    def _opened(self) -> Iterator[tuple[sa.Connection, sa.Table]]:
        """The table with its types, so that times and decimals come as such from every driver."""
        with connected(self._target, self._limits) as connection:
            yield connection, reflected(connection, self._target)

    def _filtered(self, statement: sa.Select[Any], table: sa.Table) -> sa.Select[Any]:
        if not isinstance(self._part, One):
            return statement
        column = _column(table, self._part.column)
        return statement.where(column == partition_value(self._part, kind_of(column.type)))


def _column(table: sa.Table, name: str) -> sa.Column[Any]:
    known = [column.name for column in table.columns]
    if name not in known:
        raise CannotRead(f"{table.name} has no column `{name}`.{did_you_mean(name, known)}")
    return table.columns[name]
