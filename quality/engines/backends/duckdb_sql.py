"""Measures in DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime

import duckdb
import pyarrow as pa

from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.form import TIME_IN_UTC, PartitionForm
from quality.domain.bloom.keys import Hashes
from quality.domain.language.measures import Measure
from quality.domain.language.values import error
from quality.engines.scans.column_types import ColumnType
from quality.engines.scans.parts import OnePartition
from quality.engines.sql.fused_query import QueryRefused
from quality.engines.sql.measure_checks import ColumnTypes
from quality.engines.sql.measure_sql import RowSelection, SqlDialect, Statement, TableExpression
from quality.engines.sql.partition_filter import PartitionValue, any_of, partition_comparisons
from quality.engines.sql.portable_patterns import RE2
from quality.engines.sql.repeated_keys import keyed_rows
from quality.engines.sql.scan_reader import ReadableTable, Row

_BOUND_STATEMENTS: set[str] = set()
"""Statements that were bound before: their text has the types of the columns, so that they need not be bound again."""
_MAX_BOUND_STATEMENTS = 20_000
_BATCH_ROWS, _HASHED_ROWS = 100_000, 1_000_000
_CANDIDATES = "lakehub_candidates"

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


def _cut_time(column: str, kind: ColumnType, form: PartitionForm) -> str:
    zone = quote_text(form.zone.key)
    instant = kind is ColumnType.INSTANT
    if form.text == TIME_IN_UTC and kind is ColumnType.LOCAL:
        column, instant = f"timezone('UTC', {column})", True
    local = f"timezone({zone}, {column})" if instant else f"CAST({column} AS TIMESTAMP)"
    text = f"strftime(date_trunc('{form.grain}', {local}), '%Y-%m-%d %H')"
    if not instant or form.grain is not Grain.HOUR:
        return text
    return f"{text} || '@' || CAST(date_diff('second', timezone('UTC', {column}), {local}) AS VARCHAR)"


def quote_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def partition_literal_sql(part: OnePartition, columns: ColumnTypes) -> str:
    """The condition on the rows of a partition, for where no values can be bound."""
    return any_of(
        [
            " AND ".join(
                f"{quote_name(comparison.column)} {comparison.operator} {_literal(comparison.value)}"
                for comparison in comparisons
            )
            for comparisons in partition_comparisons(part, columns)
        ]
    )


def _literal(value: PartitionValue) -> str:
    if isinstance(value, datetime):
        return f"{'TIMESTAMP' if value.tzinfo is None else 'TIMESTAMPTZ'} '{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return quote_text(value) if isinstance(value, str) else str(value)


DIALECT = SqlDialect(
    quote=quote_name,
    parameter=lambda name: f"${name}",
    key=lambda columns: f"row({', '.join(columns)})",
    matches=lambda column, pattern: f"regexp_full_match({column}, {pattern})",
    flavour=RE2,
    cut_time=_cut_time,
)


def error_line(failed: Exception) -> str:
    return str(failed).splitlines()[0]


def _column_type(native: str) -> ColumnType:
    if native.endswith("]") or native.startswith(("STRUCT(", "MAP(", "UNION(")):
        return ColumnType.NESTED
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
        with _refused():
            return self.connection.execute(statement.text, statement.parameters).fetchall()

    def batches(self, statement: Statement) -> Iterator[Sequence[Row]]:
        with _refused():
            cursor = self.connection.execute(statement.text, statement.parameters)
            while batch := cursor.fetchmany(_BATCH_ROWS):
                yield batch

    def key_hashes(self, measure: Measure, rows: RowSelection) -> Iterator[Hashes]:
        text = f"SELECT {self._hash(measure)} FROM ({keyed_rows(self.dialect, measure, rows, 'NULL')})"  # noqa: S608  # our own text
        with _refused():
            hashes = self.connection.sql(text, params={**rows.table.parameters, **rows.parameters})
            for batch in hashes.to_arrow_reader(_HASHED_ROWS):
                yield batch.column(0).to_numpy(zero_copy_only=False)

    def rows_of_hashes(
        self, measure: Measure, rows: RowSelection, partition: str, hashes: Hashes
    ) -> Iterator[Sequence[Row]]:
        keyed, candidates = keyed_rows(self.dialect, measure, rows, partition), pa.table({"h": hashes})
        self.connection.register(_CANDIDATES, candidates)
        try:
            text = f"SELECT * FROM ({keyed}) WHERE {self._hash(measure)} IN (SELECT h FROM {_CANDIDATES})"  # noqa: S608
            yield from self.batches(Statement(text, {**rows.table.parameters, **rows.parameters}))
        finally:
            self.connection.unregister(_CANDIDATES)

    @staticmethod
    def _hash(measure: Measure) -> str:
        return f"hash({', '.join(f'k{place}' for place in range(len(measure.columns)))})"


@contextmanager
def _refused() -> Iterator[None]:
    """An IOException passes through."""
    try:
        yield
    except duckdb.InterruptException:
        raise QueryRefused(error("the scan took longer than its timeout"), is_final=True) from None
    except duckdb.IOException:
        raise
    except duckdb.Error as failed:
        raise QueryRefused(error(error_line(failed))) from failed
