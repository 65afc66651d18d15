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

from quality.domain.expression.measures import Answer, Measure, Scalar
from quality.domain.expression.values import Failed, error
from quality.domain.queries import BOUND, BadQuery, understood
from quality.engines.avro import in_bytes
from quality.engines.child import decoded, encoded, number
from quality.engines.scan import Each, Limits, Scan, Target
from quality.engines.statement import checked, used, written

KIND = "query"
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class FileTable:
    """Files under a name; `reader` is a table function with a place for their list, `column` and `value` let rows through."""

    reader: str
    paths: Sequence[str]
    column: str = ""
    value: str = ""


def statement_of(measure: Measure, dialect: str, tables: Sequence[str]) -> exp.Query:
    """Raises BadQuery, also where a parameter is used that the partition does not have."""
    statement = checked(str(measure.values[0]), dialect, tables)
    given = parameters_of(measure)
    for name in sorted(used(statement)):
        if given.get(name) is None:
            raise BadQuery(f"The query uses :{name}, and a table that is looked at as a whole has none.")
    return statement


def parameters_of(measure: Measure) -> dict[str, Scalar]:
    """What it binds to :start, :end and :partition."""
    return dict(zip(BOUND, measure.values[1:], strict=False))


def of(scan: Scan) -> tuple[Measure, ...]:
    return tuple(one for one in scan.measures if one.kind == KIND)


def others(measure: Measure, scan: Scan) -> dict[str, Target]:
    """The tables of the query besides `this`, by the names that it calls them."""
    given = {name.dataset.lower(): target for name, target in scan.tables.items()}
    named = understood(str(measure.values[0])).tables
    return {name: given[name.lower()] for name in named if name.lower() in given}


def by_group(scan: Scan) -> Failed | None:
    grouped = scan.by or isinstance(scan.part, Each)
    return error("a query has one number and cannot be measured by groups") if grouped else None


def over_files(measure: Measure, tables: Mapping[str, FileTable], limits: Limits) -> Answer | Failed:
    """Raises duckdb.IOException where a file has gone."""
    try:
        statement = statement_of(measure, "duckdb", list(tables))
    except BadQuery as bad:
        return error(str(bad))
    names = used(statement)
    request = {
        "sql": written(statement, "duckdb", lambda name: f"${name}"),
        "parameters": {name: encoded(value) for name, value in parameters_of(measure).items() if name in names},
        "tables": {name: vars(table) | {"paths": list(table.paths)} for name, table in tables.items()},
        "memory": limits.memory,
        "memory_bytes": in_bytes(limits.memory),
        "threads": limits.threads,
        "seconds": limits.timeout.total_seconds(),
    }
    return in_child(request)


def in_child(request: Mapping[str, object]) -> Answer | Failed:
    """The child's answer; it is killed with all that it started when its time is over."""
    seconds = float(str(request["seconds"]))
    with subprocess.Popen(
        [sys.executable, "-m", "quality.engines.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PYTHONPATH": str(_ROOT), "PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC", "MALLOC_ARENA_MAX": "2"},
        cwd="/",
        text=True,
    ) as child:
        try:
            out, _ = child.communicate(json.dumps(request), timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            return error("the query took longer than its timeout")
    return _told(out, child.returncode)


def _told(out: str, exit_code: int) -> Answer | Failed:
    if exit_code or not out:
        return error(f"the query was stopped: {_STOPPED.get(-exit_code, 'it needs more memory than it may have')}")
    found = json.loads(out)
    if "gone" in found:
        raise duckdb.IOException(f"{found['gone']} is gone")
    if "problem" in found:
        return error(found["problem"])
    answer: Answer = decoded(found["answer"])
    return answer


_STOPPED = {14: "it took longer than its timeout", 24: "it took longer than its timeout", 25: "it writes too much"}
"""By signal: the alarm clock, processor time, the size of a file."""


def one_number(rows: Sequence[Sequence[object]]) -> Answer | Failed:
    """The answer of a database or of Spark."""
    try:
        value = number(list(rows))
    except ValueError as bad:
        return error(str(bad))
    assert value is None or isinstance(value, int | float | datetime) or hasattr(value, "as_tuple")
    return value  # type: ignore[return-value]  # int, float or Decimal, as `number` has seen
