"""A few rows of a table for people to look at. The database cuts their values short, so a large one is not sent."""

from __future__ import annotations

import sqlalchemy as sa

from lakehub.catalog.metadata import ColumnMetadata, ColumnType, SampleRows, TableMetadata, shown_value

_NOT_SHOWN = frozenset({ColumnType.BINARY, ColumnType.OTHER})
"""Bytes, and what a driver does not know."""
_MAX_LETTERS = 61
"""One more than is shown, which tells what was cut."""


def read_sample_rows(
    connection: sa.Connection, schema: str | None, name: str, described: TableMetadata, limit: int
) -> SampleRows:
    shown = [column for column in described.columns if column.type not in _NOT_SHOWN]
    if not shown:
        return ()
    query = sa.select(*map(_as_text, shown)).select_from(sa.table(name, schema=schema)).limit(limit)
    rows = [dict(zip((column.name for column in shown), row, strict=True)) for row in connection.execute(query)]
    return tuple(tuple(shown_value(row.get(column, "…")) for column in described.names) for row in rows)


def _as_text(column: ColumnMetadata) -> sa.Cast[str]:
    clause: sa.ColumnClause[str] = sa.column(column.name)
    return sa.cast(clause, sa.String(_MAX_LETTERS))
