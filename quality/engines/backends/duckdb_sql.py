"""Measures in DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from quality.domain.language.values import error
from quality.engines.scans.column_types import ColumnType
from quality.engines.sql.fused_query import QueryRefused
from quality.engines.sql.measure_sql import SqlDialect, Statement, TableExpression
from quality.engines.sql.portable_patterns import RE2
from quality.engines.sql.scan_reader import ReadableTable, Row

_BOUND_STATEMENTS: set[str] = set()
"""Statements that were bound before: their text has the types of the columns, so that they need not be bound again."""
_MAX_BOUND_STATEMENTS = 20_000

_COLUMN_TYPES = {
    "BOOLEAN": ColumnType.BOOLEAN,
    "VARCHAR": ColumnType.TEXT,
    "DOUBLE": ColumnType.FLOAT,
    "FLOAT": ColumnType.FLOAT,
    "DATE": ColumnType.DATE,
    "TIMESTAMP WITH TIME ZONE": ColumnType.INSTANT,
    "BLOB": ColumnType.BINARY,
}


def quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


DIALECT = SqlDialect(
    quote=quote_name,
    parameter=lambda name: f"${name}",
    key=lambda columns: f"row({', '.join(columns)})",
    matches=lambda column, pattern: f"regexp_full_match({column}, {pattern})",
    flavour=RE2,
)


def error_line(failed: Exception) -> str:
    return str(failed).splitlines()[0]


def _column_type(native: str) -> ColumnType:
    if native.startswith("DECIMAL"):
        return ColumnType.DECIMAL
    if native.endswith("INT") or native == "INTEGER":
        return ColumnType.INTEGER
    if native.startswith("TIMESTAMP") and native not in _COLUMN_TYPES:
        return ColumnType.LOCAL
    return _COLUMN_TYPES.get(native, ColumnType.OTHER)


@dataclass(frozen=True)
class DuckDbBackend:
    """A connection that measures. An IOException passes through: a file may have gone between listing and reading."""

    connection: duckdb.DuckDBPyConnection
    dialect = DIALECT

    def source(self, table: TableExpression) -> ReadableTable:
        """The table with its columns; reads only what says which these are."""
        cursor = self.connection.execute(f"SELECT * FROM {table.text} LIMIT 0", dict(table.parameters))  # noqa: S608  # our own text
        types = {name: str(native) for name, native, *_ in cursor.description or []}
        nulls = ", ".join(f"CAST(NULL AS {native}) AS {quote_name(name)}" for name, native in types.items())
        return ReadableTable(
            table,
            {name: _column_type(native) for name, native in types.items()},
            TableExpression(f"(SELECT {nulls} LIMIT 0)"),
        )

    def bind(self, statement: Statement) -> None:
        if statement.text in _BOUND_STATEMENTS:
            return
        self.rows(statement)
        if len(_BOUND_STATEMENTS) >= _MAX_BOUND_STATEMENTS:
            _BOUND_STATEMENTS.clear()
        _BOUND_STATEMENTS.add(statement.text)

    def rows(self, statement: Statement) -> Sequence[Row]:
        try:
            return self.connection.execute(statement.text, statement.parameters).fetchall()
        except duckdb.InterruptException:
            raise QueryRefused(error("the scan took longer than its timeout"), is_final=True) from None
        except duckdb.IOException:
            raise
        except duckdb.Error as failed:
            raise QueryRefused(error(error_line(failed))) from failed
