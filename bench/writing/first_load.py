"""The first load of a table, from Parquet files: Lakehub's bootstrap, Hudi's `insert` and `bulk_insert`, and Parquet without a table format."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from bench.harness import Report
from bench.writing import rows
from bench.writing.contenders import HUDI_OPTIONS
from bench.writing.costs import Cost, cost_of
from ingestion.spark.contract.report import SUCCEEDED
from ingestion.spark.contract.spec import JobSpec, SourceSpec, TableSpec
from ingestion.spark.execute import execute

LAKEHUB, INSERT, BULK_INSERT, PARQUET = "Lakehub, bootstrap", "Hudi, insert", "Hudi, bulk_insert", "Parquet alone"
_SOURCE_URL = "BENCH_FILES"


def costs(spark: SparkSession, count: int, days: int) -> dict[str, Cost]:
    """Each once: a load takes minutes."""
    folder = Path(tempfile.mkdtemp(prefix="lakehub-bench-load-"))
    try:
        rows.loaded(spark, count, days=days).repartition(4).write.parquet(str(folder / "source" / "orders"))
        work: dict[str, Callable[[], None]] = {
            PARQUET: lambda: _write_parquet(spark, folder),
            BULK_INSERT: lambda: _write_hudi(spark, folder, "bulk_insert"),
            LAKEHUB: lambda: _bootstrap(spark, folder),
            INSERT: lambda: _write_hudi(spark, folder, "insert"),
        }
        measured = {}
        for name, load in work.items():
            measured[name] = cost_of(spark, load)
            shutil.rmtree(folder / "lake", ignore_errors=True)
        return measured
    finally:
        shutil.rmtree(folder)


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
