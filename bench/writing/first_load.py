"""The first load of a table, from Parquet files: Lakehub's bootstrap, Hudi's `insert` and `bulk_insert`, and Parquet without a table format.

Twice by each writer: in a new session, where a third of the time of a load of this size goes to the JVM's compiler, and in one that has
loaded a table before, as for tables that take longer, and for workers that live on.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

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


class Loads(NamedTuple):
    """`again`: of the same rows, after the first."""

    first: Cost
    again: Cost


def costs(count: int, days: int) -> dict[str, Loads]:
    """Each writer in a session of its own; once, as a load takes minutes."""
    folder = Path(tempfile.mkdtemp(prefix="lakehub-bench-load-"))
    work: dict[str, Load] = {
        PARQUET: _write_parquet,
        BULK_INSERT: partial(_write_hudi, operation="bulk_insert"),
        LAKEHUB: _bootstrap,
        INSERT: partial(_write_hudi, operation="insert"),
    }
    try:
        with session() as spark:
            source = rows.loaded(spark, count, days=days).repartition(4)
            source.write.parquet(str(folder / "source" / "orders"))
        return {name: _costs_of_loads(load, folder, is_ours=name == LAKEHUB) for name, load in work.items()}
    finally:
        shutil.rmtree(folder)


def _costs_of_loads(load: Load, folder: Path, *, is_ours: bool) -> Loads:
    measured = []
    with session() as spark:
        if not is_ours:
            use_hadoops_files(spark)
        for _ in Loads._fields:
            measured.append(cost_of(spark, partial(load, spark, folder)))
            shutil.rmtree(folder / "lake")
    return Loads(*measured)


def tell(report: Report, measured: dict[str, Loads], count: int, days: int, most_of_insert: float) -> None:
    lines = [
        [
            name,
            f"{first.seconds:.1f}",
            f"{again.seconds:.1f}",
            f"{again.jobs:.0f}",
            f"{again.read / 1e6:.0f}",
            f"{again.written / 1e6:.0f}",
        ]
        for name, (first, again) in measured.items()
    ]
    headings = ["writer", "s", "s, again", "Spark jobs", "MB read", "MB written"]
    report.table(f"First load of {count:,} rows, {days} days", headings, lines)
    for name, loads in measured.items():
        for when, cost in loads._asdict().items():
            report.figure(f"load_{when}_{'_'.join(name.replace(',', '').lower().split())}_s", cost.seconds)
    ours, theirs = measured[LAKEHUB], measured[INSERT]
    for label, part, whole in (
        ("first load, of Hudi's insert, in a new session", ours.first, theirs.first),
        ("first load, of Hudi's insert, in one that has loaded a table", ours.again, theirs.again),
    ):
        report.at_most(label, part.seconds / whole.seconds, most_of_insert, unit="x")


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
