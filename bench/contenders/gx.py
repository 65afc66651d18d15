"""Great Expectations, as its guides show it: a data source, a suite of expectations, a validation definition that is run.

ENGINE is pandas, spark or duckdb (over SQLAlchemy, a view on the files). The rows are read anew in each run, as when a
pipeline checks what has arrived; `pandas-loaded` leaves the reading out.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import great_expectations as gx
import great_expectations.expectations as gxe

from bench.contenders.common import CheckResults, Task, run_contender
from bench.contenders.on_spark import open_spark
from bench.suite import Check


def expectation(check: Check, engine: str) -> Any:
    """A bound that the value must be below or above is `strict_`; a share that may be missing is 1 - `mostly`."""
    if check.kind == "mismatched" and engine == "duckdb":
        # Its own expectation for patterns refuses this database.
        pattern = check.pattern.replace("{", "{{").replace("}", "}}")
        where = f"NOT regexp_full_match({check.column}, '{pattern}')"
        gx_expectation = gxe.UnexpectedRowsExpectation(unexpected_rows_query=f"SELECT * FROM {{batch}} WHERE {where}")
    elif check.kind in BETWEEN:
        gx_expectation = BETWEEN[check.kind](**_range(check), **({"column": check.column} if check.columns else {}))
    else:
        gx_expectation = OTHERS[check.kind](check)
    gx_expectation.meta = {"check": check.name}
    return gx_expectation


BETWEEN: dict[str, Any] = {
    "rows": gxe.ExpectTableRowCountToBeBetween,
    "minimum": gxe.ExpectColumnMinToBeBetween,
    "maximum": gxe.ExpectColumnMaxToBeBetween,
    "mean": gxe.ExpectColumnMeanToBeBetween,
    "sum": gxe.ExpectColumnSumToBeBetween,
    "distinct": gxe.ExpectColumnUniqueValueCountToBeBetween,
}
OTHERS: dict[str, Callable[[Check], Any]] = {
    "nulls": lambda check: gxe.ExpectColumnValuesToNotBeNull(column=check.column),
    "null_share": lambda check: gxe.ExpectColumnValuesToNotBeNull(column=check.column, mostly=1 - check.bound),
    "duplicates": lambda check: gxe.ExpectCompoundColumnsToBeUnique(
        column_list=list(check.columns), mostly=1 - check.bound
    ),
    "outside": lambda check: gxe.ExpectColumnValuesToBeBetween(
        column=check.column, min_value=check.low, max_value=check.high
    ),
    "unexpected": lambda check: gxe.ExpectColumnValuesToBeInSet(column=check.column, value_set=list(check.values)),
    "mismatched": lambda check: gxe.ExpectColumnValuesToMatchRegex(column=check.column, regex=f"^{check.pattern}$"),
}


def _range(check: Check) -> dict[str, Any]:
    if check.op == "<=":
        return {"max_value": check.bound}
    if check.kind == "rows":
        return {"min_value": int(check.bound) + 1}
    side = "max" if check.op == "<" else "min"
    return {f"{side}_value": check.bound, f"strict_{side}": True}


def observed_value(check: Check, result: dict[str, Any]) -> float | None:
    if check.kind in BETWEEN:
        return float(result["observed_value"])
    if check.kind in ("null_share", "duplicates"):
        return float(result["unexpected_percent"]) / 100
    return float(result["unexpected_count"] if "unexpected_count" in result else result["observed_value"])


def prepare(task: Task) -> Callable[[], CheckResults]:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    suite = context.suites.add(gx.ExpectationSuite(name="flights"))
    for check in task.checks:
        suite.add_expectation(expectation(check, task.engine))
    batch, parameters = BATCHES[task.engine](context, task)
    validation = context.validation_definitions.add(gx.ValidationDefinition(name="flights", data=batch, suite=suite))

    def once() -> CheckResults:
        results = validation.run(batch_parameters=parameters(), result_format="BASIC").results
        by_name = {result.expectation_config.meta["check"]: result for result in results}
        return {
            check.name: (bool(by_name[check.name].success), observed_value(check, by_name[check.name].result))
            for check in task.checks
        }

    return once


Batch = tuple[Any, Callable[[], dict[str, Any] | None]]


def _pandas(context: Any, task: Task) -> Batch:
    import pandas

    asset = context.data_sources.add_pandas("flights").add_dataframe_asset("flights")
    return asset.add_batch_definition_whole_dataframe("all"), lambda: {
        "dataframe": pandas.read_parquet(task.folder / "plain")
    }


def _pandas_loaded(context: Any, task: Task) -> Batch:
    batch, parameters = _pandas(context, task)
    loaded = parameters()
    return batch, lambda: loaded


def _spark(context: Any, task: Task) -> Batch:
    spark = open_spark()
    asset = context.data_sources.add_spark("flights").add_dataframe_asset("flights")
    return asset.add_batch_definition_whole_dataframe("all"), lambda: {
        "dataframe": spark.read.parquet(f"{task.folder}/plain")
    }


def _duckdb(context: Any, task: Task) -> Batch:
    import duckdb
    import duckdb_engine

    # Great Expectations fetches results after it has given the connection back; the end of a transaction throws DuckDB's away.
    for word in ("do_begin", "do_commit", "do_rollback"):
        setattr(duckdb_engine.Dialect, word, lambda *_: None)
    file = Path(tempfile.mkdtemp()) / "flights.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(f"CREATE VIEW flights AS SELECT * FROM read_parquet('{task.glob}')")
    source = context.data_sources.add_sql("flights", connection_string=f"duckdb:///{file}")
    return source.add_table_asset("flights", table_name="flights").add_batch_definition_whole_table("all"), lambda: None


BATCHES: dict[str, Callable[[Any, Task], Batch]] = {
    "pandas": _pandas,
    "pandas-loaded": _pandas_loaded,
    "spark": _spark,
    "duckdb": _duckdb,
}

if __name__ == "__main__":
    sys.exit(run_contender(gx.__version__, prepare))
