"""A side of an exact comparison in a database. PostgreSQL, MySQL and MariaDB hash the rows themselves and send sums of cells;
of other databases (SQLite is a file here) the rows are streamed and hashed by Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import sqlalchemy as sa

from lakehub.catalog.metadata.tables import SqlTable
from lakehub.kernel.lake_names import OWN_PREFIXES
from quality.domain.difference.agreement import Agreement, ColumnForm
from quality.domain.difference.kept_sums import MAX_KEPT_BITS, KeptSums, WithinCells
from quality.domain.difference.reconcile import WantedRows, depth_for
from quality.domain.difference.records import Row
from quality.domain.difference.sums import CellSums, Hashes
from quality.engines.backends.database_connection import open_connection
from quality.engines.backends.database_hashes import DATABASE_HASHES, DatabaseHashes, text_form
from quality.engines.backends.database_parts import rows_of_part
from quality.engines.backends.database_sql import reflect_table
from quality.engines.endpoints.streamed_rows import StreamedRows, ValueBatch
from quality.engines.scans.parts import Part
from quality.engines.scans.remaining_time import RemainingTime
from quality.engines.scans.row_endpoint import MAX_ROWS_OF_KEY
from quality.engines.scans.scan import Limits

_BATCH_ROWS = 10_000
_MAX_SENT_BITS = 14
"""A database sends its sums over the network: 16,384 cells at most, some megabyte. Cells that differ are cut further by a second scan."""


def open_row_endpoint(table: SqlTable, part: Part, limits: Limits) -> DatabaseRows:
    return DatabaseRows(_TableReader(table, part, limits))


class DatabaseRows:
    native_hash = ""

    def __init__(self, reader: _TableReader) -> None:
        self._reader = reader

    def columns(self) -> Mapping[str, ColumnForm]:
        with self._reader.opened() as (_, table):
            return {
                column.name: text_form(column) for column in table.columns if not column.name.startswith(OWN_PREFIXES)
            }

    def count(self) -> int:
        with self._reader.opened() as (connection, table):
            statement = self._reader.filtered(sa.select(sa.func.count()).select_from(table), table, connection)
            return int(connection.execute(statement).scalar_one())

    def side(self, agreement: Agreement, rows: int) -> DatabaseSide | StreamedRows:
        with self._reader.opened() as (connection, _):
            hashes = DATABASE_HASHES.get(connection.dialect.name)
        if hashes is None:
            return StreamedRows(
                lambda: self._reader.batches(agreement.names), agreement, depth_for(rows, MAX_KEPT_BITS)
            )
        return DatabaseSide(self._reader, hashes, agreement, depth_for(rows, _MAX_SENT_BITS))


class _TableReader:
    """The rows of a part of a table, by a connection for each scan."""

    def __init__(self, target: SqlTable, part: Part, limits: Limits) -> None:
        self._target = target
        self._part = part
        self._remaining = RemainingTime(limits)

    @contextmanager
    def opened(self) -> Iterator[tuple[sa.Connection, sa.Table]]:
        """The table with its types, so that times and decimals come as such from every driver."""
        with open_connection(self._target, self._remaining.limits()) as connection:
            yield connection, reflect_table(connection, self._target)

    def filtered(self, statement: sa.Select[Any], table: sa.Table, connection: sa.Connection) -> sa.Select[Any]:
        return rows_of_part(statement, table, self._part, connection)

    def batches(self, names: Sequence[str]) -> Iterator[ValueBatch]:
        """Streamed by a cursor of the server, where the database has one."""
        with self.opened() as (connection, table):
            statement = self.filtered(sa.select(*(table.columns[name] for name in names)), table, connection)
            for rows in connection.execution_options(yield_per=_BATCH_ROWS).execute(statement).partitions():
                yield rows
                self._remaining.limits()


class DatabaseSide(KeptSums):
    """The database writes the texts of `quality.domain.bloom.keys`, hashes them by MD5 and adds up: one row a cell is sent."""

    def __init__(self, reader: _TableReader, hashes: DatabaseHashes, agreement: Agreement, depth: int) -> None:
        super().__init__(self._scan_sums, depth)
        self._reader = reader
        self._hashes = hashes
        self._agreement = agreement

    def _scan_sums(self, depth: int, within: WithinCells | None) -> CellSums:
        with self._reader.opened() as (connection, table):
            texts = (self._hashes.key_text(table, names) for names in (self._agreement.key, self._agreement.names))
            key, row = (self._hashes.md5(text) for text in texts)
            inner = self._hashes.fenced(
                self._reader.filtered(sa.select(key.label("k"), row.label("r")), table, connection)
            )
            words = self._hashes.words(inner.c.k, inner.c.r)
            prefix = words.prefix(depth).label("prefix")
            sums = sa.select(prefix, sa.func.count(), *(sa.func.sum(term) for term in words.terms())).group_by(prefix)
            if within is not None:
                sums = sums.where(words.prefix(within.depth).in_(_inline(within.prefixes)))
            return _cell_sums(depth, connection.execute(sums).all())

    def rows(self, wanted: WantedRows) -> Sequence[Row]:
        with self._reader.opened() as (connection, table):
            fetched = connection.execute(self._rows_statement(table, wanted, connection)).all()
        return [
            Row(_join(k_high, k_low), _join(r_high, r_low), tuple(texts), int(count))
            for k_high, k_low, r_high, r_low, count, *texts in fetched
        ]

    def _rows_statement(self, table: sa.Table, wanted: WantedRows, connection: sa.Connection) -> sa.Select[Any]:
        """The key is hashed of all rows, the rest only of those that are wanted."""
        names, hashes = self._agreement.names, self._hashes
        key = hashes.md5(hashes.key_text(table, self._agreement.key))
        own_columns = [table.columns[name].label(f"v{place}") for place, name in enumerate(names)]
        inner = hashes.fenced(self._reader.filtered(sa.select(key.label("k"), *own_columns), table, connection))
        values = {name: inner.c[f"v{place}"] for place, name in enumerate(names)}
        row = hashes.md5(hashes.concatenated(table, values))
        shown = [hashes.shown(table.columns[name], values[name]).label(f"c{place}") for place, name in enumerate(names)]
        key_words = hashes.words(inner.c.k, inner.c.k)
        choices = []
        if len(wanted.key_bits):
            choices.append(key_words.key_bits().in_(_inline(wanted.key_bits)))
        if len(wanted.prefixes):
            choices.append(key_words.prefix(wanted.depth).in_(_inline(wanted.prefixes)))
        chosen = hashes.fenced(sa.select(inner.c.k, row.label("r"), *shown).where(sa.or_(*choices)))
        columns = [sa.func.max(chosen.c[f"c{place}"]).label(f"c{place}") for place in range(len(names))]
        counted = (
            sa.select(chosen.c.k, chosen.c.r, sa.func.count().label("n"), *columns).group_by(chosen.c.k, chosen.c.r)
        ).subquery()
        place = sa.func.row_number().over(partition_by=counted.c.k, order_by=counted.c.r).label("place")
        numbered = sa.select(counted, place).subquery()
        words = hashes.words(numbered.c.k, numbered.c.r)
        return sa.select(
            words.k_high, words.k_low, words.r_high, words.r_low, numbered.c.n,
            *(numbered.c[f"c{number}"] for number in range(len(names))),
        ).where(numbered.c.place <= MAX_ROWS_OF_KEY)  # fmt: skip


def _inline(values: Hashes) -> sa.BindParameter[Any]:
    """Numbers of ours, written into the statement: databases bound how many parameters one has."""
    return sa.bindparam(None, values.tolist(), sa.BigInteger(), expanding=True, literal_execute=True, unique=True)


def _cell_sums(depth: int, rows: Sequence[Sequence[Any]]) -> CellSums:
    cells = np.zeros((len(rows), 4), np.uint64)
    for place, (prefix, count, r_high, r_low, product) in enumerate(rows):
        cells[place] = [int(prefix), int(count), _join(r_high, r_low), int(product) % 2**64]
    return CellSums(depth, cells[:, 0], cells[:, 1:]).merged()


def _join(high: Any, low: Any) -> int:
    """Sums of halves may carry over."""
    return ((int(high) << 32) + int(low)) % 2**64
