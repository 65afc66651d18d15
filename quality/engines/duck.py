"""Measures in DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from quality.domain.expression.values import error
from quality.engines.fusion import Refused
from quality.engines.kinds import Kind
from quality.engines.patterns import RE2
from quality.engines.reading import Row, Source
from quality.engines.select import Dialect, Statement, Table

_BOUND: set[str] = set()
"""Statements that were bound before: their text has the types of the columns, so that they need not be bound again."""
_MOST_BOUND = 20_000

_KINDS = {
    "BOOLEAN": Kind.BOOLEAN,
    "VARCHAR": Kind.TEXT,
    "DOUBLE": Kind.FLOAT,
    "FLOAT": Kind.FLOAT,
    "DATE": Kind.DATE,
    "TIMESTAMP WITH TIME ZONE": Kind.INSTANT,
    "BLOB": Kind.BINARY,
}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


DIALECT = Dialect(
    quote=quoted,
    parameter=lambda name: f"${name}",
    key=lambda columns: f"row({', '.join(columns)})",
    matches=lambda column, pattern: f"regexp_full_match({column}, {pattern})",
    flavour=RE2,
)


def cause(failed: Exception) -> str:
    return str(failed).splitlines()[0]


def _kind(native: str) -> Kind:
    if native.startswith("DECIMAL"):
        return Kind.DECIMAL
    if native.endswith("INT") or native == "INTEGER":
        return Kind.INTEGER
    if native.startswith("TIMESTAMP") and native not in _KINDS:
        return Kind.LOCAL
    return _KINDS.get(native, Kind.OTHER)


@dataclass(frozen=True)
class DuckSql:
    """A connection that measures. An IOException passes through: a file may have gone between listing and reading."""

    connection: duckdb.DuckDBPyConnection
    dialect = DIALECT

    def source(self, table: Table) -> Source:
        """The table with its columns; reads only what says which these are."""
        asked = self.connection.execute(f"SELECT * FROM {table.text} LIMIT 0", dict(table.parameters))  # noqa: S608  # our own text
        types = {name: str(native) for name, native, *_ in asked.description or []}
        nulls = ", ".join(f"CAST(NULL AS {native}) AS {quoted(name)}" for name, native in types.items())
        return Source(
            table, {name: _kind(native) for name, native in types.items()}, Table(f"(SELECT {nulls} LIMIT 0)")
        )

    def bind(self, statement: Statement) -> None:
        if statement.text in _BOUND:
            return
        self.rows(statement)
        if len(_BOUND) >= _MOST_BOUND:
            _BOUND.clear()
        _BOUND.add(statement.text)

    def rows(self, statement: Statement) -> Sequence[Row]:
        try:
            return self.connection.execute(statement.text, statement.parameters).fetchall()
        except duckdb.InterruptException:
            raise Refused(error("the scan took longer than its timeout"), over=True) from None
        except duckdb.IOException:
            raise
        except duckdb.Error as failed:
            raise Refused(error(cause(failed))) from failed
