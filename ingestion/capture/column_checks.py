"""Can the columns of a table be captured, and be its key? Asked by the definition of the table, before a load reads it in vain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ingestion.capture.binlog.column_values import UnfitColumn, lake_type_of, value_reader_of
from ingestion.capture.binlog.table_map import MappedColumn, TableMap
from ingestion.domain.column_types import is_certain_key


def unfit_columns(table: TableMap, charsets: Mapping[int, str]) -> dict[str, str]:
    """By name why a column cannot be captured, and what to do. `charsets`: by the number of a collation."""
    reasons = {column.name: _reason_against(column, charsets) for column in table.columns}
    return {name: reason for name, reason in reasons.items() if reason}


def uncertain_keys(table: TableMap, charsets: Mapping[int, str]) -> dict[str, str]:
    """By name the types of columns that no record key may have."""
    unfit = unfit_columns(table, charsets)
    types = {column.name: lake_type_of(column) for column in table.columns if column.name not in unfit}
    return {name: type_ for name, type_ in types.items() if not is_certain_key(type_)}


def _reason_against(column: MappedColumn, charsets: Mapping[int, str]) -> str:
    try:
        lake_type_of(column)
        value_reader_of(column, charsets, Counter())
    except UnfitColumn as problem:
        return str(problem)
    return ""
