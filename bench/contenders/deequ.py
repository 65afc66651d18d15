"""PyDeequ, as its guides show it: one VerificationSuite of checks over a DataFrame. ENGINE is spark. DEEQU_JAR is the path of Deequ."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from bench.contenders.common import CheckResults, Task, run_contender
from bench.contenders.on_spark import open_spark
from bench.suite import Check

os.environ.setdefault("SPARK_VERSION", "3.5")
from pydeequ.checks import Check as DeequCheck
from pydeequ.checks import CheckLevel
from pydeequ.verification import VerificationResult, VerificationSuite

CONDITIONS: dict[str, Callable[[Check], str]] = {
    "outside": lambda check: f"{check.column} BETWEEN {check.low} AND {check.high}",
    "unexpected": lambda check: f"{check.column} IN ({', '.join(repr(value) for value in check.values)})",
    "mismatched": lambda check: f"{check.column} RLIKE '^{check.pattern}$'",
}
"""Deequ counts a null as a row that does not comply, so these say that it does."""


def add_constraint(check: Check, empty: Any, rows: int) -> Any:
    """Deequ measures shares that are right, where ours are shares that are wrong."""
    if check.kind == "rows":
        return empty.hasSize(check.holds)
    if check.kind in ("nulls", "null_share"):
        return empty.hasCompleteness(check.column, lambda share: check.holds(1 - share))
    if check.kind == "duplicates":
        return empty.hasDistinctness(list(check.columns), lambda share: check.holds(1 - share))
    if check.kind == "distinct":
        return empty.hasNumberOfDistinctValues(check.column, check.holds, None, 1000)
    if check.kind in CONDITIONS:
        condition = f"{check.column} IS NULL OR {CONDITIONS[check.kind](check)}"
        return empty.satisfies(condition, check.name, lambda share: check.holds(round((1 - share) * rows)))
    of_column = {"minimum": "hasMin", "maximum": "hasMax", "mean": "hasMean", "sum": "hasSum"}
    return getattr(empty, of_column[check.kind])(check.column, check.holds)


def metric_of(check: Check) -> tuple[str, str]:
    """Name and instance of the metric behind a check."""
    if check.kind in CONDITIONS:
        return "Compliance", check.name
    names = {
        "rows": "Size",
        "nulls": "Completeness",
        "null_share": "Completeness",
        "duplicates": "Distinctness",
        "distinct": "Histogram.bins",
    }
    return names.get(check.kind, check.kind.capitalize()), ",".join(check.columns) or "*"


def observed_value(check: Check, measured: float, rows: int) -> float:
    if check.kind in ("null_share", "duplicates"):
        return 1 - measured
    return round((1 - measured) * rows) if check.kind in (*CONDITIONS, "nulls") else measured


def prepare(task: Task) -> Callable[[], CheckResults]:
    spark = open_spark(spark_jars=os.environ["DEEQU_JAR"])
    rows = int(task.checks[0].bound) + 1

    def once() -> CheckResults:
        verifying = VerificationSuite(spark).onData(spark.read.parquet(f"{task.folder}/plain"))
        for check in task.checks:
            verifying = verifying.addCheck(add_constraint(check, DeequCheck(spark, CheckLevel.Error, check.name), rows))
        result = verifying.run()
        statuses = {
            row["check"]: row["check_status"]
            for row in VerificationResult.checkResultsAsDataFrame(spark, result).collect()
        }
        metrics = {
            (row["name"], row["instance"]): row["value"]
            for row in VerificationResult.successMetricsAsDataFrame(spark, result).collect()
        }
        return {
            check.name: (statuses[check.name] == "Success", observed_value(check, metrics[metric_of(check)], rows))
            for check in task.checks
        }

    return once


if __name__ == "__main__":
    code = run_contender(version("pydeequ"), prepare)
    # Its callbacks from the JVM keep the process alive.
    sys.stdout.flush()
    os._exit(code)
