"""A side in a database: its keys are streamed and written by Python. Only the columns of the key are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from lakehub.catalog.metadata.tables import SqlTable
from lakehub.kernel.suggest import did_you_mean
from quality.domain.bloom.keys import UnsupportedKeyType, encode_key
from quality.engines.backends.database_connection import open_connection
from quality.engines.backends.database_parts import rows_of_part
from quality.engines.backends.database_sql import reflect_table
from quality.engines.endpoints.streamed import KeyBatch, StreamedEndpoint
from quality.engines.scans.parts import CannotRead, Part
from quality.engines.scans.remaining_time import RemainingTime
from quality.engines.scans.scan import Limits

_BATCH_ROWS = 10_000
_MD5_DATABASES = frozenset({"postgresql", "mysql", "mariadb"})


def open_endpoint(table: SqlTable, part: Part, columns: Sequence[str], limits: Limits) -> StreamedEndpoint:
    return DatabaseEndpoint(_KeyReader(table, part, columns, limits), columns)


class DatabaseEndpoint(StreamedEndpoint):
    def __init__(self, read: _KeyReader, columns: Sequence[str]) -> None:
        super().__init__(columns, read.count, read.batches)
        self._read = read

    def sample(self, size: int, salt: str) -> list[bytes]:
        """A database that hashes chooses the sample itself, and only the sample is sent."""
        chosen = self._read.first_keys(size, salt)
        return super().sample(size, salt) if chosen is None else list(dict.fromkeys(chosen))


class _KeyReader:
    def __init__(self, target: SqlTable, part: Part, columns: Sequence[str], limits: Limits) -> None:
        self._target = target
        self._part = part
        self._columns = columns
        self._remaining = RemainingTime(limits)

    def count(self) -> int:
        with self._opened() as (connection, table):
            rows = rows_of_part(sa.select(sa.func.count()).select_from(table), table, self._part, connection)
            return int(connection.execute(rows).scalar_one())

    def batches(self) -> Iterator[KeyBatch]:
        """Streamed by a cursor of the server, where the database has one."""
        with self._opened() as (connection, table):
            statement = rows_of_part(self._select_keys(table), table, self._part, connection)
            for rows in connection.execution_options(yield_per=_BATCH_ROWS).execute(statement).partitions():
                yield self._keys(rows)
                self._remaining.limits()

    def first_keys(self, size: int, salt: str) -> KeyBatch | None:
        """The first `size` keys in the order of their MD5 with `salt`; None where the database has no MD5."""
        with self._opened() as (connection, table):
            if connection.dialect.name not in _MD5_DATABASES:
                return None
            texts = (sa.cast(_column(table, name), sa.String) for name in self._columns)
            order = sa.func.md5(sa.func.concat_ws("|", salt, *texts))
            first = rows_of_part(self._select_keys(table), table, self._part, connection).order_by(order).limit(size)
            return self._keys(connection.execute(first).all())

    def _select_keys(self, table: sa.Table) -> sa.Select[Any]:
        columns = [_column(table, name) for name in self._columns]
        return sa.select(*columns).where(*(column.is_not(None) for column in columns))

    def _keys(self, rows: Sequence[sa.Row[Any]]) -> KeyBatch:
        try:
            return [encode_key(row, self._columns) for row in rows]
        except UnsupportedKeyType as unfit:
            raise CannotRead(str(unfit)) from unfit

    @contextmanager
    def _opened(self) -> Iterator[tuple[sa.Connection, sa.Table]]:
        """The table with its types, so that times and decimals come as such from every driver."""
        with open_connection(self._target, self._remaining.limits()) as connection:
            yield connection, reflect_table(connection, self._target)


def _column(table: sa.Table, name: str) -> sa.Column[Any]:
    column_names = [column.name for column in table.columns]
    if name not in column_names:
        raise CannotRead(f"{table.name} has no column `{name}`.{did_you_mean(name, column_names)}")
    return table.columns[name]
