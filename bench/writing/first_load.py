"""The first load of a table, from Parquet files: Lakehub's bootstrap, Hudi's `insert` and `bulk_insert`, and Parquet without a table format."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from bench.harness import Report
from bench.writing import rows
from bench.writing.contenders import HUDI_OPTIONS
from bench.writing.costs import Cost, cost_of
from bench.writing.sessions import session, use_hadoops_files
from ingestion.spark.contract.report import SUCCEEDED
from ingestion.spark.contract.spec import JobSpec, SourceSpec, TableSpec
from ingestion.spark.execute import execute

LAKEHUB, INSERT, BULK_INSERT, PARQUET = "Lakehub, bootstrap", "Hudi, insert", "Hudi, bulk_insert", "Parquet alone"
Load = Callable[[SparkSession, Path], None]
"""From `source` of the folder into its `lake`."""
_SOURCE_URL = "BENCH_FILES"
_WARM_UP_ROWS = 100_000


def costs(count: int, days: int) -> dict[str, Cost]:
    """Each writer in a session of its own, after a small load that is not measured; once, as a load takes minutes."""
    folder = Path(tempfile.mkdtemp(prefix="lakehub-bench-load-"))
    work: dict[str, Load] = {
        PARQUET: _write_parquet,
        BULK_INSERT: partial(_write_hudi, operation="bulk_insert"),
        LAKEHUB: _bootstrap,
        INSERT: partial(_write_hudi, operation="insert"),
    }
    try:
        with session() as spark:
            for name, rows_of_source in (("small", min(count, _WARM_UP_ROWS)), ("large", count)):
                source = rows.loaded(spark, rows_of_source, days=days).repartition(4)
                source.write.parquet(str(folder / name / "source" / "orders"))
        return {name: _cost_of_load(load, folder, is_ours=name == LAKEHUB) for name, load in work.items()}
    finally:
        shutil.rmtree(folder)


def _cost_of_load(load: Load, folder: Path, *, is_ours: bool) -> Cost:
    with session() as spark:
        if not is_ours:
            use_hadoops_files(spark)
        load(spark, folder / "small")
        cost = cost_of(spark, partial(load, spark, folder / "large"))
    for name in ("small", "large"):
        shutil.rmtree(folder / name / "lake")
    return cost


def tell(report: Report, measured: dict[str, Cost], count: int, days: int, most_of_insert: float) -> None:
    lines = [
        [name, f"{cost.seconds:.1f}", f"{cost.jobs:.0f}", f"{cost.read / 1e6:.0f}", f"{cost.written / 1e6:.0f}"]
        for name, cost in measured.items()
    ]
    headings = ["writer", "s", "Spark jobs", "MB read", "MB written"]
    report.table(f"First load of {count:,} rows, {days} days", headings, lines)
    for name, cost in measured.items():
        report.figure(f"load_{'_'.join(name.replace(',', '').lower().split())}_s", cost.seconds)
    share = measured[LAKEHUB].seconds / measured[INSERT].seconds
    report.at_most("first load, of Hudi's insert", share, most_of_insert, unit="x")


def _bootstrap(spark: SparkSession, folder: Path) -> None:
    """Duplicate keys and rows that do not fit are looked for."""
    table = TableSpec(
        name="orders",
        uri=(folder / "lake" / "orders").as_uri(),
        error_uri=(folder / "lake" / "_errors").as_uri(),
        record_key=("id",),
        reference_key="changed_at",
        partition_column="day",
    )
    source = SourceSpec("files", f"env:{_SOURCE_URL}", "orders/*.parquet", cursor_column="changed_at")
    spec = JobSpec(run_id="load", kind="bootstrap", table=table, source=source)
    report = execute(spec, spark=spark, secrets={_SOURCE_URL: (folder / "source").as_uri()})
    if report.status != SUCCEEDED:
        raise AssertionError(f"The bootstrap has {report.status}: {report.error}")


def _write_hudi(spark: SparkSession, folder: Path, operation: str) -> None:
    options = {**HUDI_OPTIONS, "hoodie.metadata.enable": "false", "hoodie.datasource.write.operation": operation}
    frame = spark.read.parquet(str(folder / "source" / "orders"))
    frame.write.format("hudi").options(**options).mode("append").save((folder / "lake" / "orders").as_uri())


def _write_parquet(spark: SparkSession, folder: Path) -> None:
    frame = spark.read.parquet(str(folder / "source" / "orders"))
    frame.repartition("day").write.partitionBy("day").parquet(str(folder / "lake" / "orders"))
