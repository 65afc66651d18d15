"""The floor: one DuckDB query, written by hand, that computes what the 20 checks need in one pass over the files."""

from __future__ import annotations

import sys
from collections.abc import Callable

import duckdb

from bench.contenders.common import CheckResults, Task, judge_values, run_contender

QUERY = """
SELECT
    COUNT(*),
    COUNT(*) - COUNT(carrier),
    COUNT(*) - COUNT(flight),
    COUNT(*) - COUNT(origin),
    COUNT(*) - COUNT(dest),
    1 - COUNT(tailnum) / COUNT(*),
    1 - COUNT(dep_delay) / COUNT(*),
    1 - COUNT(arr_delay) / COUNT(*),
    MIN(distance),
    MAX(distance),
    MIN(dep_delay),
    MAX(arr_delay),
    AVG(dep_delay),
    AVG(air_time),
    SUM(distance),
    COUNT(DISTINCT carrier),
    1 - COUNT(DISTINCT (flight_date, carrier, flight, origin)) / COUNT(*),
    COUNT(*) FILTER (dep_delay NOT BETWEEN -60 AND 720),
    COUNT(*) FILTER (origin NOT IN ('EWR', 'JFK', 'LGA')),
    COUNT(*) FILTER (NOT regexp_full_match(tailnum, 'N[0-9A-Z]{1,5}'))
FROM read_parquet(?)
"""


def prepare(task: Task) -> Callable[[], CheckResults]:
    connection = duckdb.connect(config={"threads": 2})

    def once() -> CheckResults:
        row = connection.execute(QUERY, [task.glob]).fetchone()
        assert row is not None
        return judge_values(task.checks, dict(zip((check.name for check in task.checks), row, strict=True)))

    return once


if __name__ == "__main__":
    sys.exit(run_contender(duckdb.__version__, prepare))
