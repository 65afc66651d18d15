"""A side in a database: its keys are streamed and written by Python. Only the columns of the key are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from lakehub.kernel.suggest import did_you_mean
from quality.domain.bloom_keys import NoKey, key_bytes
from quality.engines.databases import kind_of
from quality.engines.scan import CannotRead, Limits, One, Part, SqlTable, Target
from quality.engines.sqlalchemy import connected, partition_value, reflected
from quality.exchanges.sides import Keys, Left, Streamed

_BATCH = 10_000
_HAVE_MD5 = frozenset({"postgresql", "mysql", "mariadb"})


def side(target: Target, part: Part, columns: Sequence[str], limits: Limits) -> Streamed:
    if not isinstance(target, SqlTable):
        raise CannotRead("This engine reads tables of databases; for a Hudi table or files choose engine=duckdb.")
    return InDatabase(_Read(target, part, columns, limits), columns)


class InDatabase(Streamed):
    def __init__(self, read: _Read, columns: Sequence[str]) -> None:
        super().__init__(columns, read.count, read.batches)
        self._read = read

    def sample(self, size: int, salt: str) -> list[bytes]:
        """A database that hashes chooses the sample itself, and only the sample is sent."""
        chosen = self._read.first(size, salt)
        return super().sample(size, salt) if chosen is None else list(dict.fromkeys(chosen))


class _Read:
    def __init__(self, target: SqlTable, part: Part, columns: Sequence[str], limits: Limits) -> None:
        self._target = target
        self._part = part
        self._columns = columns
        self._left = Left(limits)

    def count(self) -> int:
        with self._opened() as (connection, table):
            rows = self._filtered(sa.select(sa.func.count()).select_from(table), table)
            return int(connection.execute(rows).scalar_one())

    def batches(self) -> Iterator[Keys]:
        """Streamed by a cursor of the server, where the database has one."""
        with self._opened() as (connection, table):
            wanted = self._filtered(sa.select(*(_column(table, name) for name in self._columns)), table)
            for rows in connection.execution_options(yield_per=_BATCH).execute(wanted).partitions():
                yield self._keys(rows)
                self._left.limits()

    def first(self, size: int, salt: str) -> Keys | None:
        """The first `size` keys in the order of their MD5 with `salt`; None where the database has no MD5."""
        with self._opened() as (connection, table):
            if connection.dialect.name not in _HAVE_MD5:
                return None
            columns = [_column(table, name) for name in self._columns]
            texts = (sa.func.coalesce(sa.cast(column, sa.String), "") for column in columns)
            order = sa.func.md5(sa.func.concat_ws("|", salt, *texts))
            wanted = self._filtered(sa.select(*columns), table).order_by(order).limit(size)
            return self._keys(connection.execute(wanted).all())

    def _keys(self, rows: Sequence[sa.Row[Any]]) -> Keys:
        try:
            return [key_bytes(row, self._columns) for row in rows]
        except NoKey as unfit:
            raise CannotRead(str(unfit)) from unfit

    @contextmanager
    def _opened(self) -> Iterator[tuple[sa.Connection, sa.Table]]:
        """The table with its types, so that times and decimals come as such from every driver."""
        with connected(self._target, self._left.limits()) as connection:
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
