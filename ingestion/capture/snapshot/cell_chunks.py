"""Reads a table of cells in ranges of its row keys: of each row the newest cell of each column, all as they were after one transaction.

Texts are told apart by their bytes, as the binlog does, whatever the collation of their columns.
"""

# ruff: noqa: S608  # names are quoted, and values are bound

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from ingestion.capture.binlog.events import Row
from ingestion.capture.binlog.table_map import TableMap
from ingestion.capture.snapshot.chunks import consistent_snapshot
from ingestion.capture.snapshot.select_list import quoted, row_of, select_list
from lakehub.kernel.cells.cell_rows import MAX_SAMPLED_BYTES, SAMPLE_CELLS
from lakehub.kernel.cells.cell_tables import CellColumns

_OLDER_AT_ONCE = 100


@dataclass(frozen=True)
class CellChunk:
    """`cells`: with the names of the table's columns. `identities`: of each, as it is asked for again (`older_cells`). `last_key`: after which the next chunk
    begins; None: this was the last."""

    cells: Sequence[Row]
    identities: Sequence[tuple[Any, ...]]
    sequence: int
    last_key: tuple[Any, ...] | None


@dataclass(frozen=True)
class CellReader:
    connection: sa.Connection
    table: TableMap
    columns: CellColumns
    _mapped: Sequence[Any] = field(init=False)

    def __post_init__(self) -> None:
        by_name = {column.name: column for column in self.table.columns}
        object.__setattr__(self, "_mapped", [by_name[name] for name in self.columns.names])

    def chunk(self, after: tuple[Any, ...] | None, rows: int) -> CellChunk:
        """Of so many row keys. Raises BinlogError where the server does not tell the place."""
        with consistent_snapshot(self.connection) as sequence:
            keys = self._keys(after, rows)
            selected = self._newest(after, keys[-1]) if keys else self._newest(None, None) if after is None else []
        cells = [row_of(self._mapped, row[3:]) for row in selected]
        last_key = (keys[-1],) if len(keys) == rows else None
        return CellChunk(cells, [tuple(row[:3]) for row in selected], sequence, last_key)

    def older_cells(self, identity: tuple[Any, ...]) -> Iterator[Row]:
        """Of the same row and column, the newest first: one that is read is followed by those before it."""
        key, column, ref_key = identity
        while True:
            older = self._older(key, column, ref_key)
            yield from (row_of(self._mapped, row[1:]) for row in older)
            if len(older) < _OLDER_AT_ONCE:
                return
            ref_key = older[-1][0]

    def sample(self) -> list[Row]:
        """Some of the oldest and of the newest cells, by the primary key; without one as the server gives them. Large bodies are left out."""
        keys = [quoted(name) for name in self.table.primary_key]
        orders = [", ".join(f"{key} {way}" for key in keys) for way in ("DESC", "ASC")] if keys else [""]
        rows: list[Row] = []
        for order in orders:
            ordered = f"ORDER BY {order}" if order else ""
            body, names = quoted(self.columns.body), ", ".join(quoted(name) for name in self.columns.names)
            some = f"SELECT {names} FROM {self._from} {ordered} LIMIT {SAMPLE_CELLS}"
            query = f"SELECT {select_list(self._mapped)} FROM ({some}) AS some WHERE {body} IS NULL OR LENGTH({body}) <= {MAX_SAMPLED_BYTES}"
            rows += [row_of(self._mapped, row) for row in self.connection.execute(sa.text(query))]
        return rows

    @property
    def _from(self) -> str:
        return f"{quoted(self.table.database)}.{quoted(self.table.table)}"

    def _keys(self, after: tuple[Any, ...] | None, rows: int) -> list[Any]:
        key = quoted(self.columns.row_key)
        beyond, bound = ("", {}) if after is None else (f"AND {key} > :after", {"after": after[0]})
        query = (
            f"SELECT DISTINCT {key} FROM {self._from} WHERE {key} IS NOT NULL {beyond} ORDER BY {key} LIMIT {int(rows)}"
        )
        return [*self.connection.execute(sa.text(query), bound).scalars()]

    def _newest(self, after: tuple[Any, ...] | None, last: Any) -> Sequence[sa.Row[Any]]:
        """With those that have no row key, before all others."""
        key, column, ref_key = (quoted(name) for name in self.columns.identity)
        if after is None:
            within, bound = f"({key} <= :last OR {key} IS NULL)", {"last": last}
        else:
            within, bound = f"{key} > :after AND {key} <= :last", {"last": last, "after": after[0]}
        newest = (
            f"SELECT MIN({key}) AS k, MIN({column}) AS c, MAX({ref_key}) AS r, CAST({key} AS BINARY) AS kb, CAST({column} AS BINARY) AS cb "
            f"FROM {self._from} WHERE {within} GROUP BY kb, cb"
        )
        query = (
            f"SELECT newest.k, newest.c, newest.r, {self._selected('t')} FROM ({newest}) AS newest JOIN {self._from} AS t "
            f"ON t.{key} <=> newest.k AND t.{column} <=> newest.c AND t.{ref_key} <=> newest.r "
            f"AND CAST(t.{key} AS BINARY) <=> newest.kb AND CAST(t.{column} AS BINARY) <=> newest.cb"
        )
        return self.connection.execute(sa.text(query), bound).fetchall()

    def _older(self, key: Any, column: Any, ref_key: Any) -> Sequence[sa.Row[Any]]:
        names = [quoted(name) for name in self.columns.identity]
        query = (
            f"SELECT {names[2]}, {select_list(self._mapped)} FROM {self._from} WHERE {names[0]} <=> :k AND {names[1]} <=> :c AND {names[2]} < :r "
            f"AND CAST({names[0]} AS BINARY) <=> CAST(:k AS BINARY) AND CAST({names[1]} AS BINARY) <=> CAST(:c AS BINARY) "
            f"ORDER BY {names[2]} DESC LIMIT {_OLDER_AT_ONCE}"
        )
        return self.connection.execute(sa.text(query), {"k": key, "c": column, "r": ref_key}).fetchall()

    def _selected(self, table: str) -> str:
        """The list of what is selected, of this table."""
        text = select_list(self._mapped)
        for name in dict.fromkeys(self.columns.names):
            text = text.replace(quoted(name), f"{table}.{quoted(name)}")
        return text
