"""Tables of cells in a MariaDB, as Uber's Schemaless keeps them: described as the rows that the cells make in the lake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, ClassVar

import sqlalchemy as sa

from lakehub.catalog.metadata import (
    SAMPLE_SHOWN,
    ColumnMetadata,
    ColumnType,
    KeyEvidence,
    MetadataUnavailable,
    NewestValues,
    SampleRows,
    TableMetadata,
    shown_value,
)
from lakehub.catalog.metadata.table_locations import TableLocation
from lakehub.catalog.metadata.tables import StoredTable
from lakehub.catalog.storages.sql import split_schema
from lakehub.catalog.storages.sql.mysql import MySqlStorage
from lakehub.kernel.cells.bodies import BrokenBody
from lakehub.kernel.cells.cell_rows import (
    MAX_SAMPLED_BYTES,
    SAMPLE_CELLS,
    Cell,
    assembled,
    plain_key,
    read_cell,
    sampled_types,
)
from lakehub.kernel.cells.cell_tables import (
    CellColumns,
    CellOptions,
    NotCells,
    find_cell_columns,
    has_cells,
    read_cell_object,
    table_name_of,
)

_TYPES: Mapping[str, ColumnType] = {
    "int": ColumnType.INTEGER,
    "long": ColumnType.INTEGER,
    "double": ColumnType.FLOAT,
    "boolean": ColumnType.BOOLEAN,
    "string": ColumnType.STRING,
}
_COLUMNS = sa.text(
    "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = DATABASE() ORDER BY table_name, ordinal_position"
)


@dataclass(frozen=True)
class CellTable(StoredTable):
    """Its rows lie in pieces: no engine reads it, and tests are of the table in the lake."""

    url: str = field(repr=False)
    table: str = ""

    def __str__(self) -> str:
        return f"the cells of `{self.table}`, which are rows in the lake only"


class SchemalessStorage(MySqlStorage):
    """A table is `name` or `database.name`, with what its columns are called behind `?` where they have no usual names."""

    has_cells: ClassVar[bool] = True
    can_hide_columns = lands_chunks = takes_patterns = False
    table_hint = "or table?row_key=uuid&column=name&ref_key=version&body=data where its columns are called otherwise"
    empty_hint = (
        "No table of the database is known by the names of its columns to hold cells. One whose columns are called otherwise is written "
        "`table?row_key=uuid&column=name&ref_key=version&body=data`."
    )

    def tables(self, limit: int) -> Sequence[str]:
        with self._connected() as connection:
            names = [tuple(map(str, row)) for row in connection.execute(_COLUMNS)]
        by_table = {table: [name for _, name in rows] for table, rows in groupby(names, lambda row: row[0])}
        return sorted(table for table, columns in by_table.items() if has_cells(columns))[:limit]

    def describe(self, table: str) -> TableMetadata:
        """Of the row key, and of what a sample of the cells has."""
        name, options = _read_object(table)
        stored = super().describe(name)
        columns = _cell_columns(name, stored, options)
        kinds = {column.name: column.type for column in stored.columns}
        key_type = "long" if kinds[columns.row_key] is ColumnType.INTEGER else "string"
        sample = [*self._sample(name, columns, stored.primary_key, options)]
        types = sampled_types(columns.row_key, key_type, sample, options)
        described = (ColumnMetadata(each, _TYPES[type_], each != columns.row_key) for each, type_ in types.items())
        return TableMetadata(tuple(described), (columns.row_key,), _shown_rows(columns.row_key, types, sample, options))

    def _sample(self, table: str, columns: CellColumns, key: Sequence[str], options: CellOptions) -> Iterator[Cell]:
        """The newest ones first, without those that are broken."""
        schema, name = split_schema(table)
        clauses: list[sa.ColumnClause[Any]] = [sa.column(part) for part in columns.names]
        query = sa.select(*clauses).select_from(sa.table(name, schema=schema)).limit(SAMPLE_CELLS)
        parts: list[sa.ColumnClause[Any]] = [sa.column(part) for part in key]
        orders = [[part.desc() for part in parts], [part.asc() for part in parts]] if parts else [[]]
        with self._connected() as connection:
            rows = [row for order in orders for row in connection.execute(_of_small_bodies(query.order_by(*order)))]
        for key, column, ref_key, body in rows:
            text = column.decode(errors="replace") if isinstance(column, bytes) else column
            try:
                yield read_cell(plain_key(key), text, ref_key, body, options)
            except BrokenBody:
                continue

    def key_evidence(self, table: str, key: Sequence[str]) -> KeyEvidence:
        """Rows are made by their key: each has another one."""
        name, options = _read_object(table)
        columns = _cell_columns(name, super().describe(name), options)
        if tuple(key) != (columns.row_key,):
            raise MetadataUnavailable(
                f"The rows that the cells of `{name}` make are named by `{columns.row_key}`, and not by {', '.join(key)}. Name that as the key."
            )
        evidence = super().key_evidence(name, key)
        rows = evidence.distinct
        return KeyEvidence(rows, rows, 0, drawn=evidence.drawn, total=None)

    def newest_values(self, table: str, columns: Sequence[str], limit: int) -> NewestValues:
        """Not known: they lie within the bodies."""
        return NewestValues()

    def sample_rows(self, table: str, described: TableMetadata, limit: int) -> SampleRows:
        """Of the rows that cells make, and not of the cells."""
        return described.sample[:limit]

    def table(self, table: str) -> StoredTable:
        return CellTable(self.url, table_name_of(table))

    def table_location(self, table: str) -> TableLocation:
        return super().table_location(table_name_of(table))


def _of_small_bodies(query: sa.Select[Any]) -> sa.Select[Any]:
    some = query.subquery()
    body = [*some.c][-1]
    return sa.select(*some.c).where(sa.or_(body.is_(None), sa.func.length(body) <= MAX_SAMPLED_BYTES))


def _shown_rows(key: str, types: Mapping[str, str], sample: Sequence[Cell], options: CellOptions) -> SampleRows:
    """Of the sample alone: an older cell of a row may lie beyond it."""
    rows = []
    for row_key, row in assembled(sample, options).items():
        if not row.is_there:
            continue
        values: dict[str, Any] = {key: row_key}
        for cell in row.columns.values():
            with suppress(BrokenBody):
                values |= cell.fields(options)
        rows.append(tuple(shown_value(values.get(name)) for name in types))
        if len(rows) == SAMPLE_SHOWN:
            break
    return tuple(rows)


def _read_object(table: str) -> tuple[str, CellOptions]:
    """Raises MetadataUnavailable."""
    try:
        return read_cell_object(table)
    except NotCells as problem:
        raise MetadataUnavailable(str(problem)) from problem


def _cell_columns(name: str, stored: TableMetadata, options: CellOptions) -> CellColumns:
    """Raises MetadataUnavailable."""
    try:
        return find_cell_columns(name, stored.names, options)
    except NotCells as problem:
        raise MetadataUnavailable(str(problem)) from problem
