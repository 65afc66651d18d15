"""Cells as a binlog has them, and by an obvious model the rows that they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ingestion.capture.binlog.events import Row, RowChange, RowsChanged
from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn, TableMap
from tests.unit.ingestion.capture.tapping import UTF8

CellValues = tuple[Any, str, int, Mapping[str, Any] | None]
"""Row key, column, reference key, body."""


def cell_table(name: str = "cells", key: MappedColumn | None = None, body: MappedColumn | None = None) -> TableMap:
    columns = (
        MappedColumn("added_id", ColumnKind.LONGLONG),
        key or MappedColumn("row_key", ColumnKind.VARCHAR, (40, 0), collation=UTF8),
        MappedColumn("column_name", ColumnKind.VARCHAR, (40, 0), collation=UTF8),
        MappedColumn("ref_key", ColumnKind.LONGLONG),
        body or MappedColumn("body", ColumnKind.BLOB, (4,), collation=UTF8),
    )
    return TableMap("shop", name, columns, ("added_id",))


def cell_row(row_key: Any, column: Any, ref_key: Any, body: Any) -> Row:
    return {"added_id": 1, "row_key": row_key, "column_name": column, "ref_key": ref_key, "body": body}


def added(of: TableMap, *cells: tuple[Any, Any, Any, Any]) -> RowsChanged:
    return RowsChanged(of, [RowChange(None, cell_row(*cell)) for cell in cells])


def rows_of(cells: Iterable[CellValues]) -> dict[Any, dict[str, Any]]:
    """By row key, without nulls: the newest cell of each column, whatever the order."""
    newest: dict[tuple[Any, str], tuple[int, Mapping[str, Any]]] = {}
    for key, column, ref_key, body in cells:
        if ref_key > newest.get((key, column), (-(2**63), {}))[0]:
            newest[key, column] = ref_key, body or {}
    rows: dict[Any, dict[str, Any]] = {}
    for (key, column), (ref_key, body) in newest.items():
        fields = {f"{column}__{name}": value for name, value in body.items() if value is not None}
        rows.setdefault(key, {}).update({f"{column}__ref_key": ref_key, **fields})
    return rows
