"""Soda, as its guides show it: a contract in YAML, verified locally against a data source. ENGINE is duckdb or spark."""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from soda_core.__version__ import SODA_CORE_VERSION
from soda_core.contracts import verify_contract_locally

from bench.contenders.common import CheckResults, Task, run_contender
from bench.contenders.on_spark import open_spark
from bench.suite import Check

SCALE = {"null_share": 100, "duplicates": 100}
"""Soda's shares are percentages."""
THRESHOLDS = {
    "<": "must_be_less_than",
    "<=": "must_be_less_than_or_equal",
    ">": "must_be_greater_than",
    "==": "must_be",
}
FUNCTIONS = {"minimum": "min", "maximum": "max", "mean": "avg", "sum": "sum"}
OF_THE_TABLE = ("rows", "duplicates", "distinct")


def contract(checks: tuple[Check, ...], dataset: str) -> str:
    """JSON is YAML too."""
    columns: dict[str, list[dict[str, Any]]] = {}
    for check in checks:
        if check.kind not in OF_THE_TABLE:
            columns.setdefault(check.column, []).append(_check(check))
    return json.dumps(
        {
            "dataset": dataset,
            "checks": [_check(check) for check in checks if check.kind in OF_THE_TABLE],
            "columns": [{"name": name, "checks": column_checks} for name, column_checks in columns.items()],
        }
    )


def _check(check: Check) -> dict[str, Any]:
    kind, more = _kind(check)
    threshold: dict[str, Any] = {THRESHOLDS[check.op]: check.bound * SCALE.get(check.kind, 1)}
    if check.kind in SCALE:
        threshold["metric"] = "percent"
    return {kind: {"name": check.name, "qualifier": check.name.replace(" ", "_"), **more, "threshold": threshold}}


def _kind(check: Check) -> tuple[str, dict[str, Any]]:
    if check.kind == "rows":
        return "row_count", {}
    if check.kind in FUNCTIONS:
        return "aggregate", {"function": FUNCTIONS[check.kind]}
    if check.kind == "distinct":
        return "metric", {"expression": f"COUNT(DISTINCT {check.column})"}
    if check.kind == "duplicates":
        return "duplicate", {"columns": list(check.columns)}
    if check.kind in ("nulls", "null_share"):
        return "missing", {}
    return "invalid", _valid(check)


def _valid(check: Check) -> dict[str, Any]:
    if check.kind == "outside":
        return {"valid_min": check.low, "valid_max": check.high}
    if check.kind == "unexpected":
        return {"valid_values": list(check.values)}
    return {"valid_format": {"name": check.name, "regex": f"^{check.pattern}$"}}


def prepare(task: Task) -> Callable[[], CheckResults]:
    logging.disable(logging.WARNING)
    source, dataset = SOURCES[task.engine](task)
    file = Path(tempfile.mkdtemp()) / "flights.yml"
    file.write_text(contract(task.checks, dataset))

    def once() -> CheckResults:
        ended = verify_contract_locally(data_sources=[source], contract_file_path=str(file))
        by_name = {
            check_result.check.name: check_result
            for check_result in ended.contract_verification_results[0].check_results
        }
        return {
            check.name: (
                by_name[check.name].outcome.name == "PASSED",
                float(by_name[check.name].threshold_value) / SCALE.get(check.kind, 1),
            )
            for check in task.checks
        }

    return once


def _duckdb(task: Task) -> tuple[Any, str]:
    import duckdb
    from soda_duckdb.common.data_sources.duckdb_data_source import DuckDBDataSourceImpl

    connection = duckdb.connect(config={"threads": 2})
    connection.execute(f"CREATE VIEW flights AS SELECT * FROM read_parquet('{task.glob}')")
    return DuckDBDataSourceImpl.from_existing_cursor(connection, "ops"), "ops/main/flights"


def _spark(task: Task) -> tuple[Any, str]:
    from soda_sparkdf.common.data_sources.sparkdf_data_source import SparkDataFrameDataSourceImpl

    spark = open_spark()
    spark.read.parquet(f"{task.folder}/plain").createOrReplaceTempView("flights")
    return SparkDataFrameDataSourceImpl.from_existing_session(spark, "ops"), "ops/flights"


SOURCES: dict[str, Callable[[Task], tuple[Any, str]]] = {"duckdb": _duckdb, "spark": _spark}

if __name__ == "__main__":
    sys.exit(run_contender(SODA_CORE_VERSION, prepare))
