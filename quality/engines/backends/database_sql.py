"""Measures in the SQL of a database, over tables with the types that the database reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, NoSuchTableError, SQLAlchemyError

from lakehub.catalog.metadata.tables import SqlTable
from lakehub.kernel.suggest import did_you_mean
from quality.domain.language.values import error
from quality.engines.backends import database_dialects
from quality.engines.backends.database_connection import driver_message, table_label
from quality.engines.scans.parts import CannotRead
from quality.engines.sql.fused_query import QueryRefused
from quality.engines.sql.measure_sql import SqlDialect, Statement, TableExpression
from quality.engines.sql.scan_reader import ReadableTable, Row


@dataclass(frozen=True)
class DatabaseBackend:
    """A connection that measures. A statement that fails is rolled back to where it began."""

    connection: sa.Connection
    dialect: SqlDialect

    def source(self, target: SqlTable) -> ReadableTable:
        table = reflect_table(self.connection, target)
        columns = {column.name: database_dialects.column_type_of(column.type) for column in table.columns}
        text = ".".join(
            database_dialects.quote_name(self.connection, part) for part in (table.schema, table.name) if part
        )
        return ReadableTable(TableExpression(text), columns, TableExpression(f"(SELECT * FROM {text} WHERE 1 = 0)"))  # noqa: S608  # quoted names only

    def bind(self, statement: Statement) -> None:
        self.rows(statement)

    def rows(self, statement: Statement) -> Sequence[Row]:
        with self._refused(), self.connection.begin_nested():
            return self.connection.execute(bound_text(statement)).all()

    def kinds(self, statement: Statement) -> list[str]:
        """Of the columns of its answer, where the driver names them (psycopg), as in `int8`; empty words where it does not."""
        with self._refused(), self.connection.begin_nested():
            described = self.connection.execute(bound_text(statement)).cursor
            columns = described.description if described is not None else ()
            return [getattr(column, "type_display", "").partition("(")[0] for column in columns]

    def batches(self, statement: Statement) -> Iterator[Sequence[Row]]:
        """Streamed by a cursor of the server, where the database has one."""
        with self._refused(), self.connection.begin_nested():
            # Of this statement alone: what ends the savepoint has no rows for a cursor.
            text = bound_text(statement).execution_options(yield_per=_BATCH_ROWS)
            yield from self.connection.execute(text).partitions()

    @contextmanager
    def _refused(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as failed:
            over = any(word in str(failed.orig).lower() for word in _TIMEOUT_MESSAGES)
            if failed.connection_invalidated:
                raise
            raise QueryRefused(
                error("the scan took longer than its timeout" if over else driver_message(failed)), is_final=over
            ) from failed


def bound_text(statement: Statement) -> sa.TextClause:
    return sa.text(statement.text).bindparams(
        *(sa.bindparam(name, value, database_dialects.bind_type(value)) for name, value in statement.parameters.items())
    )


_BATCH_ROWS = 10_000
_TIMEOUT_MESSAGES = (
    "statement timeout",
    "max_statement_time",
    "maximum statement execution time",
    "interrupted",
    "user request",
)


def reflect_table(connection: sa.Connection, target: SqlTable) -> sa.Table:
    """The table with its columns. `a.b` is the table b of the schema a, or a table whose name has a dot."""
    inspector, problem = sa.inspect(connection), ""
    for schema, name in _schema_and_name(target.table):
        try:
            reflected_columns = inspector.get_columns(name, schema=schema)
        except NoSuchTableError:
            continue
        except DBAPIError as failed:
            if failed.connection_invalidated:
                raise
            problem = problem or f" ({driver_message(failed)})"
            continue
        columns = (sa.Column(column["name"], column["type"]) for column in reflected_columns)
        return sa.Table(name, sa.MetaData(), *columns, schema=schema, quote=True, quote_schema=True)
    if problem:
        raise CannotRead(
            f"The table {table_label(target)} cannot be read{problem}. "
            "Check that the database is whole, and what the connection may read."
        )
    raise CannotRead(f"There is no table {table_label(target)}.{_similar_tables(inspector, target.table)}")


def _schema_and_name(table: str) -> Iterator[tuple[str | None, str]]:
    """Where a name may be cut into schema and table, the last dot first."""
    parts = table.split(".")
    for at in range(len(parts) - 1, 0, -1):
        yield ".".join(parts[:at]), ".".join(parts[at:])
    yield None, table


def _similar_tables(inspector: sa.Inspector, table: str) -> str:
    schema, _, name = table.rpartition(".")
    with suppress(SQLAlchemyError):
        return did_you_mean(name, inspector.get_table_names(schema=schema or None))
    return ""
