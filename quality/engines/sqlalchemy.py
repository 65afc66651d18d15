"""Tables of any database that SQLAlchemy speaks to. Read-only and bounded, by the database itself where it can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.exc import DataError
from sqlglot import exp

from lakehub.catalog.metadata.tables import SqlTable, StoredTable
from lakehub.user_sql import BadQuery
from lakehub.user_sql.checked_select import CALLS_BY_DOT, parameters_used
from lakehub.user_sql.rendered_sql import join_ctes, rename_tables, render_sql, split_ctes
from quality.domain.language.measures import Answer, Measure
from quality.domain.language.values import Failed, error
from quality.engines import Engine
from quality.engines.backends import database_dialects
from quality.engines.backends.database_connection import open_connection
from quality.engines.backends.database_sql import DatabaseBackend, bound_text
from quality.engines.backends.query_permission import query_refusal
from quality.engines.endpoints.database_rows import open_row_endpoint
from quality.engines.endpoints.sqlalchemy import open_endpoint
from quality.engines.scans.endpoint import Endpoint
from quality.engines.scans.parts import CannotRead, OnePartition, Part
from quality.engines.scans.row_endpoint import RowEndpoint
from quality.engines.scans.scan import Limits, Scan, ScanAnswers
from quality.engines.sql.fused_query import QueryRefused
from quality.engines.sql.measure_sql import RowSelection, Statement
from quality.engines.sql.partition_filter import partition_where
from quality.engines.sql.scan_reader import ReadableTable, ScanReader
from quality.engines.user_sql import user_queries
from quality.engines.user_sql.child_process import UNFIT_VALUE_MESSAGE
from quality.engines.user_sql.own_functions import own_function_refusal, possible_row_calls
from quality.engines.user_sql.sqlite_queries import run_over_sqlite


class SqlAlchemyEngine(Engine):
    reads = (SqlTable,)
    limited_by_connection = True

    def measure(self, scan: Scan, limits: Limits) -> ScanAnswers:
        table = _readable(scan.target)
        with open_connection(table, limits) as connection:
            return _measure_table(connection, scan, table, limits)

    def endpoint(self, table: StoredTable, part: Part, columns: Sequence[str], limits: Limits) -> Endpoint:
        return open_endpoint(_readable(table), part, columns, limits)

    def row_endpoint(self, table: StoredTable, part: Part, limits: Limits) -> RowEndpoint:
        return open_row_endpoint(_readable(table), part, limits)


def _readable(table: StoredTable) -> SqlTable:
    if isinstance(table, SqlTable):
        return table
    raise CannotRead("This engine reads tables of databases; for a Hudi table or files choose engine=duckdb.")


def _measure_table(connection: sa.Connection, scan: Scan, target: SqlTable, limits: Limits) -> ScanAnswers:
    backend = DatabaseBackend(connection, database_dialects.dialect_of(connection))
    source = backend.source(target)
    where, parameters = "", dict[str, object]()
    if isinstance(scan.part, OnePartition):
        where, bound = partition_where(scan.part, backend.dialect, source.columns)
        parameters |= bound
    rows = RowSelection(source.table, source.columns, where, parameters)
    query_answers = {
        measure: _run_user_query(backend, measure, scan, rows, target, limits)
        for measure in scan.measures
        if measure.is_query
    }
    rest = tuple(measure for measure in scan.measures if measure not in query_answers)
    tables = {
        measure.other: _lookup_table(backend, scan.other_tables[measure.other], target)
        for measure in rest
        if measure.other is not None
    }
    reader_answers = ScanReader(backend, scan, source, limits, where=where, **parameters).answer(rest, tables)
    return ScanAnswers(
        {**query_answers, **reader_answers.answers},
        scan_count=reader_answers.scan_count + len(query_answers),
        group_count=reader_answers.group_count,
    )


def _run_user_query(
    backend: DatabaseBackend, measure: Measure, scan: Scan, this: RowSelection, target: SqlTable, limits: Limits
) -> Answer | Failed:
    """The query in the database, or over an SQLite file in a process of its own, with the tables that it names before it: `this` is the part that is tested."""
    try:
        composed = _compose(backend, measure, scan, this, target)
    except BadQuery as bad:
        return error(str(bad))
    if isinstance(composed, Failed):
        return composed
    if backend.connection.dialect.name == "sqlite":
        return run_over_sqlite(
            backend.connection,
            bound_text(composed.statement),
            tables=composed.tables,
            defined_names=composed.defined_names,
            limits=limits,
        )
    if refusal := query_refusal(backend.connection):
        return error(refusal)
    if refusal := own_function_refusal(backend.connection, composed.statement.text, composed.row_calls):
        return error(refusal)
    try:
        if unfit := _unfit_answer(backend, composed.statement):
            return unfit
        return user_queries.single_number(backend.rows(composed.statement))
    except QueryRefused as refused:
        # What a database says of a value that does not fit shows the value.
        return error(UNFIT_VALUE_MESSAGE) if isinstance(refused.__cause__, DataError) else refused.failed


def _unfit_answer(backend: DatabaseBackend, statement: Statement) -> Failed | None:
    """By its types, where the database says them before it computes anything: a text may have a gigabyte, all of which would be in
    the memory of this process before it is refused. MySQL and MariaDB bound what they send at once themselves."""
    if backend.connection.dialect.driver != "psycopg":
        return None
    kinds = backend.kinds(Statement(statement.text, {**statement.parameters, _ROW_LIMIT: 0}))
    if len(kinds) != 1:
        return error(f"the query answers {len(kinds)} columns; one row with one number is wanted")
    if kinds[0] in _NUMBERS:
        return None
    return error(f"the query answers a {'str' if kinds[0] in _TEXTS else kinds[0]}, which is no number")


_NUMBERS = frozenset({"int2", "int4", "int8", "float4", "float8", "numeric"})
_TEXTS = frozenset({"text", "varchar", "bpchar"})


@dataclass(frozen=True)
class _Composed:
    """A person's query behind the tables that it reads; `defined_names` are those that the statement defines, `row_calls` those
    behind a dot that may be functions."""

    statement: Statement
    tables: list[str]
    defined_names: tuple[str, ...]
    row_calls: frozenset[str]


def _compose(
    backend: DatabaseBackend, measure: Measure, scan: Scan, this: RowSelection, target: SqlTable
) -> _Composed | Failed:
    """Raises BadQuery."""
    others = {
        name: _lookup_table(backend, other, target) for name, other in user_queries.query_tables(measure, scan).items()
    }
    dialect = database_dialects.sqlglot_dialect(backend.connection)
    statement = user_queries.checked_statement(measure, dialect, ["this", *others])
    if (why := user_queries.grouping_failure(scan)) is not None:
        return why
    tables = {"this": this}
    for name, other_table in others.items():
        if isinstance(other_table, Failed):
            return other_table
        tables[name] = RowSelection(other_table.table, other_table.columns)
    return _statement_with_tables(backend, measure, statement, tables)


def _statement_with_tables(
    backend: DatabaseBackend, measure: Measure, statement: exp.Query, tables: Mapping[str, RowSelection]
) -> _Composed:
    """Under names of their own: SQLite takes a table that is named like its WITH for the WITH itself. Raises BadQuery."""
    names = {name.lower(): f"lakehub_{number}" for number, name in enumerate(tables)}
    read = {table.name.lower() for table in statement.find_all(exp.Table)}
    given = user_queries.bound_parameters(measure)
    parameters = {name: given[name] for name in parameters_used(statement)} | dict(tables["this"].parameters)
    dialect, printed = database_dialects.sqlglot_dialect(backend.connection), list[exp.Expr]()

    def text(tree: exp.Expr) -> str:
        return render_sql(tree, dialect, lambda name: f":{name}", database_dialects.escape_persons_sql, printed.append)

    body, own, recursive = split_ctes(rename_tables(statement, names))
    ctes = [
        _named_subquery(backend, names[name.lower()], rows) for name, rows in tables.items() if name.lower() in read
    ]
    ctes += [text(cte) for cte in own]
    beginning = f"WITH {'RECURSIVE ' if recursive else ''}{', '.join(ctes)} " if ctes else ""
    query = f"{beginning}SELECT * FROM ({text(body)}) AS answered LIMIT :{_ROW_LIMIT}"  # noqa: S608  # checked, bound
    row_calls = frozenset[str]()
    if dialect in CALLS_BY_DOT:
        # Of what is printed: some functions are printed as a dot.
        *own_printed, body_printed = printed
        whole = join_ctes(body_printed, own_printed, recursive=recursive)
        columns = {names[name.lower()]: frozenset(rows.columns) for name, rows in tables.items()}
        row_calls = frozenset(possible_row_calls(whole, columns))
    # A parameter makes drivers that know the extended protocol use it: then the server takes one statement only.
    composed = Statement(query, parameters | {_ROW_LIMIT: 2})
    defined_names = (*names.values(), *(cte.alias for cte in own), "answered")
    return _Composed(composed, [rows.table.text for rows in tables.values()], defined_names, row_calls)


_ROW_LIMIT = "lakehub_row_limit"


def _named_subquery(backend: DatabaseBackend, name: str, rows: RowSelection) -> str:
    where = f" WHERE {rows.where}" if rows.where else ""
    return f"{database_dialects.quote_name(backend.connection, name)} AS (SELECT * FROM {rows.table.text} AS scanned{where})"  # noqa: S608


def _lookup_table(backend: DatabaseBackend, other: StoredTable, target: SqlTable) -> ReadableTable | Failed:
    if not isinstance(other, SqlTable) or other.url != target.url:
        return error("both tables must be in one database, or both in the lake")
    try:
        return backend.source(other)
    except CannotRead as failed:
        return error(str(failed))
