"""Queries that people wrote. Never fused: each runs alone, behind its own bounds.

Over files: in a child process (`child`), by DuckDB. In a database: by the database, in the same read-only transaction with its
timeout. In Spark: in the session of the process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb
from sqlglot import exp

from lakehub.catalog.metadata.tables import StoredTable
from quality.domain.language.measures import Answer, Measure, Scalar
from quality.domain.language.values import Failed, error
from quality.domain.user_sql import QUERY_PARAMETERS, BadQuery, parsed_query
from quality.engines.scans.memory_size import parse_memory_size
from quality.engines.scans.parts import EachPartition
from quality.engines.scans.scan import Limits, Scan
from quality.engines.user_sql.checked_select import check_select, parameters_used, render_sql
from quality.engines.user_sql.sandbox import check_single_number, decode_value, encode_value

_REPOSITORY_ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class FileTable:
    """Files under a name; `reader` is a table function with a place for their list, `where` lets rows through."""

    reader: str
    paths: Sequence[str]
    where: str = ""


def checked_statement(measure: Measure, dialect: str, tables: Sequence[str]) -> exp.Query:
    """Raises BadQuery, also where a parameter is used that the partition does not have."""
    statement = check_select(str(measure.values[0]), dialect, tables)
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
    except BadQuery as bad:
        return error(str(bad))
    names = parameters_used(statement)
    request = {
        "sql": render_sql(statement, "duckdb", lambda name: f"${name}"),
        "parameters": {name: encode_value(value) for name, value in bound_parameters(measure).items() if name in names},
        "tables": {name: vars(table) | {"paths": list(table.paths)} for name, table in tables.items()},
        "memory": limits.memory,
        "memory_bytes": parse_memory_size(limits.memory),
        "threads": limits.threads,
        "seconds": limits.timeout.total_seconds(),
    }
    return run_in_sandbox(request)


def run_in_sandbox(request: Mapping[str, object]) -> Answer | Failed:
    """The child's answer; it is killed with all that it started when its time is over."""
    seconds = float(str(request["seconds"]))
    with subprocess.Popen(
        [sys.executable, "-m", "quality.engines.user_sql.sandbox"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={
            "PYTHONPATH": str(_REPOSITORY_ROOT),
            "PATH": os.defpath,
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "MALLOC_ARENA_MAX": "2",
        },
        cwd="/",
        text=True,
    ) as child:
        try:
            out, _ = child.communicate(json.dumps(request), timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            return error("the query took longer than its timeout")
    return _decode_output(out, child.returncode)


def _decode_output(out: str, exit_code: int) -> Answer | Failed:
    if exit_code or not out:
        return error(
            f"the query was stopped: {_SIGNAL_CAUSES.get(-exit_code, 'it needs more memory than it may have')}"
        )
    reply = json.loads(out)
    if "gone" in reply:
        raise duckdb.IOException(f"{reply['gone']} is gone")
    if "problem" in reply:
        return error(reply["problem"])
    answer: Answer = decode_value(reply["answer"])
    return answer


_SIGNAL_CAUSES = {
    14: "it took longer than its timeout",
    24: "it took longer than its timeout",
    25: "it writes too much",
}
"""By signal: the alarm clock, processor time, the size of a file."""


def single_number(rows: Sequence[Sequence[object]]) -> Answer | Failed:
    """The answer of a database or of Spark."""
    try:
        value = check_single_number(list(rows))
    except ValueError as bad:
        return error(str(bad))
    assert value is None or isinstance(value, int | float | datetime) or hasattr(value, "as_tuple")
    return value  # type: ignore[return-value]  # int, float or Decimal, as `check_single_number` has seen
