"""Tables of any database that SQLAlchemy speaks to. Read-only and bounded, by the database itself where it can be."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DataError, DBAPIError, NoSuchModuleError, NoSuchTableError, SQLAlchemyError
from sqlglot import exp

from lakehub.kernel import addresses
from lakehub.kernel.suggest import did_you_mean
from quality.domain.expression.measures import Answer, Measure
from quality.domain.expression.values import Failed, error
from quality.domain.queries import BadQuery
from quality.engines import databases, queries
from quality.engines.child import UNFIT
from quality.engines.databases import Database
from quality.engines.deadline import deadline
from quality.engines.fusion import Refused
from quality.engines.kinds import Kind
from quality.engines.reading import Reading, Row, Source
from quality.engines.scan import CannotRead, Limits, Measured, One, Scan, SqlTable, Target
from quality.engines.select import Dialect, Rows, Statement, Table
from quality.engines.statement import divided, renamed, used, written

log = logging.getLogger(__name__)

_GRACE = timedelta(seconds=5)
"""A database that does not stop by itself is left so long after its timeout."""


class SqlAlchemy:
    def measure(self, scan: Scan, limits: Limits) -> Measured:
        if not isinstance(scan.target, SqlTable):
            raise CannotRead("This engine reads tables of databases; for a Hudi table or files choose engine=duckdb.")
        with connected(scan.target, limits) as connection:
            return _measured(connection, scan, scan.target, limits)


def _measured(connection: sa.Connection, scan: Scan, target: SqlTable, limits: Limits) -> Measured:
    backend = Sql(connection, databases.dialect_of(connection))
    source = backend.source(target)
    where, parameters = "", {}
    if isinstance(scan.part, One):
        column = f"scanned.{databases.quoted(connection, scan.part.column)}"
        kind = source.columns.get(scan.part.column)
        if kind is None:
            near = did_you_mean(scan.part.column, source.columns)
            raise CannotRead(f"{target.table} has no partition column `{scan.part.column}`.{near}")
        where, parameters = f"{column} = :part", {"part": partition_value(scan.part, kind)}
    rows = Rows(source.table, source.columns, where, parameters)
    asked = {one: _query(backend, one, scan, rows, target) for one in queries.of(scan)}
    rest = tuple(one for one in scan.measures if one not in asked)
    tables = {one.other: _looked_into(backend, scan.tables[one.other], target) for one in rest if one.other is not None}
    found = Reading(backend, scan, source, limits, where=where, **parameters).found(rest, tables)
    return Measured({**asked, **found.answers}, scans=found.scans + len(asked), groups=found.groups)


def _query(backend: Sql, measure: Measure, scan: Scan, this: Rows, target: SqlTable) -> Answer | Failed:
    """The query in the database, with the tables that it names before it: `this` is the part that is tested."""
    try:
        others = {name: _looked_into(backend, other, target) for name, other in queries.others(measure, scan).items()}
        statement = queries.statement_of(measure, databases.written_in(backend.connection), ["this", *others])
    except BadQuery as bad:
        return error(str(bad))
    why = queries.by_group(scan) or next((one for one in others.values() if isinstance(one, Failed)), None)
    if why is not None:
        return why
    tables = {"this": this} | {
        name: Rows(one.table, one.columns) for name, one in others.items() if isinstance(one, Source)
    }
    try:
        return queries.one_number(backend.rows(_with_tables(backend, measure, statement, tables)))
    except Refused as refused:
        # What a database says of a value that does not fit shows the value.
        return error(UNFIT) if isinstance(refused.__cause__, DataError) else refused.failed


def _with_tables(backend: Sql, measure: Measure, statement: exp.Query, tables: Mapping[str, Rows]) -> Statement:
    """Under names of their own: SQLite takes a table that is named like its WITH for the WITH itself."""
    names = {name.lower(): f"lakehub_{number}" for number, name in enumerate(tables)}
    read = {table.name.lower() for table in statement.find_all(exp.Table)}
    given = queries.parameters_of(measure)
    parameters = {name: given[name] for name in used(statement)} | dict(tables["this"].parameters)

    def text(tree: exp.Expr) -> str:
        return written(tree, databases.written_in(backend.connection), lambda name: f":{name}", databases.escaped)

    asked, own, recursive = divided(renamed(statement, names))
    ctes = [_named(backend, names[name.lower()], rows) for name, rows in tables.items() if name.lower() in read]
    ctes += [text(cte) for cte in own]
    beginning = f"WITH {'RECURSIVE ' if recursive else ''}{', '.join(ctes)} " if ctes else ""
    return Statement(f"{beginning}SELECT * FROM ({text(asked)}) AS answered LIMIT 2", parameters)  # noqa: S608  # checked, bound


def _named(backend: Sql, name: str, rows: Rows) -> str:
    where = f" WHERE {rows.where}" if rows.where else ""
    return f"{databases.quoted(backend.connection, name)} AS (SELECT * FROM {rows.table.text} AS scanned{where})"  # noqa: S608


def _looked_into(backend: Sql, other: Target, target: SqlTable) -> Source | Failed:
    if not isinstance(other, SqlTable) or other.url != target.url:
        return error("both tables must be in one database, or both in the lake")
    try:
        return backend.source(other)
    except CannotRead as failed:
        return error(str(failed))


@contextmanager
def connected(target: SqlTable, limits: Limits) -> Iterator[sa.Connection]:
    """A connection of its own, which may only read and has `limits.timeout` for each statement."""
    shown = _shown(target)
    try:
        with (
            _engine(target.url).connect() as connection,
            deadline(limits.timeout + _GRACE, lambda: _cancel(connection)),
        ):
            _bind(connection, limits)
            yield connection
    except (NoSuchModuleError, ImportError) as missing:
        raise CannotRead(
            f"{shown} cannot be read: this kind of database has no driver here: {missing}. Install the driver that "
            "docs/engines.md names for it, and restart the workers."
        ) from missing
    except SQLAlchemyError as failed:
        raise CannotRead(f"{shown} cannot be read: {_cause(failed)}") from failed


def _shown(target: SqlTable) -> str:
    return f"{target.table} of {addresses.shown(target.url)}"


def _cause(failed: SQLAlchemyError) -> str:
    return str(getattr(failed, "orig", None) or failed).splitlines()[0]


@lru_cache(maxsize=16)
def _engine(url: str) -> sa.Engine:
    parts = sa.make_url(url)
    if parts.get_backend_name() == "sqlite" and parts.database and not parts.query:
        return sa.create_engine(parts, poolclass=sa.NullPool, creator=lambda: _existing(str(parts.database)))
    return sa.create_engine(parts, poolclass=sa.NullPool)


def _existing(path: str) -> Any:
    """SQLite would make an empty database of a mistyped path."""
    return sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True, timeout=30, check_same_thread=False)


def _bind(connection: sa.Connection, limits: Limits) -> None:
    for statement in Database.of(connection).bounds(int(limits.timeout.total_seconds() * 1000)):
        connection.exec_driver_sql(statement)
    if connection.dialect.name == "sqlite":
        databases.teach_sqlite(_raw(connection))
        _stop_after(connection, limits.timeout)


def _raw(connection: sa.Connection) -> Any:
    return connection.connection.driver_connection


def _stop_after(connection: sa.Connection, timeout: timedelta) -> None:
    """SQLite has no timeout of its own: it asks us every so many steps whether to go on."""
    ends_at = time.monotonic() + timeout.total_seconds()
    _raw(connection).set_progress_handler(lambda: int(time.monotonic() > ends_at), 10_000)


def _cancel(connection: sa.Connection) -> None:
    """From another thread, for a database that has not kept its own timeout. What this meets is for the log: the thread that
    waits gets its own error."""
    raw = _raw(connection)
    try:
        if hasattr(raw, "cancel"):
            raw.cancel()
        elif connection.dialect.name in ("mysql", "mariadb"):
            with connection.engine.connect() as other:
                other.exec_driver_sql(f"KILL QUERY {int(raw.thread_id()):d}")
        else:
            raw.close()
    except Exception:
        log.exception(
            "A query of %s could not be cancelled", connection.engine.url.render_as_string(hide_password=True)
        )


@dataclass(frozen=True)
class Sql:
    """A connection that measures. A statement that fails is rolled back to where it began."""

    connection: sa.Connection
    dialect: Dialect

    def source(self, target: SqlTable) -> Source:
        table = reflected(self.connection, target)
        columns = {column.name: databases.kind_of(column.type) for column in table.columns}
        text = ".".join(databases.quoted(self.connection, part) for part in (table.schema, table.name) if part)
        return Source(Table(text), columns, Table(f"(SELECT * FROM {text} WHERE 1 = 0)"))  # noqa: S608  # quoted names only

    def bind(self, statement: Statement) -> None:
        self.rows(statement)

    def rows(self, statement: Statement) -> Sequence[Row]:
        text = sa.text(statement.text).bindparams(
            *(sa.bindparam(name, value, databases.bindable(value)) for name, value in statement.parameters.items())
        )
        try:
            with self.connection.begin_nested():
                return self.connection.execute(text).all()
        except DBAPIError as failed:
            over = any(word in str(failed.orig).lower() for word in _OUT_OF_TIME)
            if failed.connection_invalidated:
                raise
            raise Refused(
                error("the scan took longer than its timeout" if over else _cause(failed)), over=over
            ) from failed


_OUT_OF_TIME = (
    "statement timeout",
    "max_statement_time",
    "maximum statement execution time",
    "interrupted",
    "user request",
)


def reflected(connection: sa.Connection, target: SqlTable) -> sa.Table:
    """The table with its columns. `a.b` is the table b of the schema a, or a table whose name has a dot."""
    inspector, problem = sa.inspect(connection), ""
    for schema, name in _places(target.table):
        try:
            found = inspector.get_columns(name, schema=schema)
        except NoSuchTableError:
            continue
        except DBAPIError as failed:
            if failed.connection_invalidated:
                raise
            problem = problem or f" ({_cause(failed)})"
            continue
        columns = (sa.Column(one["name"], one["type"]) for one in found)
        return sa.Table(name, sa.MetaData(), *columns, schema=schema, quote=True, quote_schema=True)
    raise CannotRead(f"There is no table {_shown(target)}{problem}.{_near(inspector, target.table)}")


def _places(table: str) -> Iterator[tuple[str | None, str]]:
    """Where a name may be cut into schema and table, the last dot first."""
    parts = table.split(".")
    for at in range(len(parts) - 1, 0, -1):
        yield ".".join(parts[:at]), ".".join(parts[at:])
    yield None, table


def _near(inspector: sa.Inspector, table: str) -> str:
    schema, _, name = table.rpartition(".")
    with suppress(SQLAlchemyError):
        return did_you_mean(name, inspector.get_table_names(schema=schema or None))
    return ""


def partition_value(part: One, kind: Kind) -> str | date:
    """The name of a partition as the column's own kind, so that an index on it is used."""
    try:
        if kind in (Kind.LOCAL, Kind.INSTANT):
            return datetime.fromisoformat(part.value)
        return date.fromisoformat(part.value) if kind is Kind.DATE else part.value
    except ValueError:
        raise CannotRead(f"{part.value!r} cannot be a value of the partition column `{part.column}`: {kind}.") from None
