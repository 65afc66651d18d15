"""Queries that people wrote. Never fused: each runs alone, behind its own bounds.

Over files: in a confined process, by DuckDB. In SQLite: in a confined process (`sqlite_queries`). In another database: by the
database, in the same read-only transaction with its timeout. In Spark: in the JVM of this process, which is killed where it
does not stop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlglot import exp

from lakehub.catalog.metadata.tables import StoredTable
from lakehub.user_sql import BadQuery
from lakehub.user_sql.checked_select import check_select, parameters_used
from lakehub.user_sql.rendered_sql import render_sql
from quality.domain.language.measures import Answer, Measure, Scalar
from quality.domain.language.values import Failed, error
from quality.domain.user_sql import QUERY_PARAMETERS, parsed_query
from quality.engines.scans.parts import EachPartition
from quality.engines.scans.scan import Limits, Scan
from quality.engines.user_sql.checked_patterns import check_patterns
from quality.engines.user_sql.child_process import check_single_number, encode_value
from quality.engines.user_sql.confinement import limits_of_child, run_confined


@dataclass(frozen=True)
class FileTable:
    """Files under a name; `reader` is a table function with a place for their list, `where` lets rows through."""

    reader: str
    paths: Sequence[str]
    where: str = ""


def checked_statement(measure: Measure, dialect: str, tables: Sequence[str]) -> exp.Query:
    """Raises BadQuery, also where a parameter is used that the partition does not have."""
    statement = check_select(str(measure.values[0]), dialect, tables, QUERY_PARAMETERS)
    check_patterns(statement, dialect)
    given = bound_parameters(measure)
    for name in sorted(parameters_used(statement)):
        if given.get(name) is None:
            raise BadQuery(f"The query uses :{name}, and a table that is looked at as a whole has none.")
    return statement


def bound_parameters(measure: Measure) -> dict[str, Scalar]:
    """What it binds to :start, :end and :partition."""
    return dict(zip(QUERY_PARAMETERS, measure.values[1:], strict=False))


def query_tables(measure: Measure, scan: Scan) -> dict[str, StoredTable]:
    """The tables of the query besides `this`, by the names that it calls them."""
    given = {name.dataset.lower(): target for name, target in scan.other_tables.items()}
    named = parsed_query(str(measure.values[0])).tables
    return {name: given[name.lower()] for name in named if name.lower() in given}


def grouping_failure(scan: Scan) -> Failed | None:
    grouped = scan.group_by or isinstance(scan.part, EachPartition)
    return error("a query has one number and cannot be measured by groups") if grouped else None


def run_over_files(measure: Measure, tables: Mapping[str, FileTable], limits: Limits) -> Answer | Failed:
    """Raises duckdb.IOException where a file has gone."""
    try:
        statement = checked_statement(measure, "duckdb", list(tables))
        text = render_sql(statement, "duckdb", lambda name: f"${name}")
    except BadQuery as bad:
        return error(str(bad))
    names = parameters_used(statement)
    request = {
        "sql": text,
        "parameters": {name: encode_value(value) for name, value in bound_parameters(measure).items() if name in names},
        "tables": {name: vars(table) | {"paths": list(table.paths)} for name, table in tables.items()},
        **limits_of_child(limits),
    }
    return run_confined("quality.engines.user_sql.sandbox", request)


def single_number(rows: Sequence[Sequence[object]]) -> Answer | Failed:
    """The answer of a database or of Spark."""
    try:
        value = check_single_number(list(rows))
    except ValueError as bad:
        return error(str(bad))
    assert value is None or isinstance(value, int | float | datetime) or hasattr(value, "as_tuple")
    return value  # type: ignore[return-value]  # int, float or Decimal, as `check_single_number` has seen
