"""Who writes: Lakehub's jobs, from the source to the commit, and Hudi's own writer, from rows that Spark reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from bench.writing import rows
from bench.writing.rows import Order
from bench.writing.sessions import use_hadoops_files
from ingestion.spark.contract.report import SUCCEEDED
from ingestion.spark.contract.spec import GlobalIndexSpec, JobSpec, SourceSpec, TableSpec
from ingestion.spark.execute import execute
from ingestion.spark.file_groups.key_map import MAX_KEYS
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.tables import hudi
from ingestion.spark.tables.checkpoint_metadata import commit_metadata

CHANGED = "changed.parquet"
_SOURCE_URL = "BENCH_SHOP"


class Contender(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def is_global(self) -> bool:
        """Does it find a key in whatever partition it is?"""

    @property
    def most_rows(self) -> float:
        """Of a table that it is meant for."""

    def load(self, spark: SparkSession, folder: Path, loaded: DataFrame) -> None: ...

    def prepare(self, folder: Path, orders: Sequence[Order]) -> None:
        """Put the changed rows where it reads them; not measured."""

    def upsert(self, spark: SparkSession, folder: Path, number: int) -> Mapping[str, float]:
        """The seconds of its phases, where it tells them."""


@dataclass(frozen=True)
class Lakehub:
    """The job `incremental`: reads the source, fits, judges each row against the stored one, and commits with the checkpoint."""

    index: str
    is_global: bool = True
    global_index: GlobalIndexSpec | None = None

    @property
    def name(self) -> str:
        return f"Lakehub, {self.index}"

    @property
    def most_rows(self) -> float:
        return MAX_KEYS if self.index == "memory" else inf

    def load(self, spark: SparkSession, folder: Path, loaded: DataFrame) -> None:
        index: Index = INDEXES.get(self.index)()
        position = {"watermark": {"type": "str", "value": f"{rows.LOADED_AT:%Y-%m-%d %H:%M:%S}"}, "seen": []}
        marks = commit_metadata(run={"run_id": "load"}, checkpoint=position)
        table = self.table(folder)
        hudi.write_commit(loaded, table, "bulk_insert", index.write_options(table), marks)
        index.settle(spark, table, loaded.count())

    def prepare(self, folder: Path, orders: Sequence[Order]) -> None:
        rows.to_shop(folder / "shop.db", orders)

    def upsert(self, spark: SparkSession, folder: Path, number: int) -> Mapping[str, float]:
        source = SourceSpec("sql", f"env:{_SOURCE_URL}", "orders", cursor_column="changed_at")
        spec = JobSpec(run_id=f"run-{number}", kind="incremental", table=self.table(folder), source=source)
        report = execute(spec, spark=spark, secrets={_SOURCE_URL: f"sqlite:///{folder / 'shop.db'}"})
        if report.status != SUCCEEDED or report.has_more:
            raise AssertionError(f"{self.name}: {report.status}: {report.error or 'not all was read'}")
        return report.phases

    def table(self, folder: Path) -> TableSpec:
        return TableSpec(
            name="orders",
            uri=(folder / "lake" / "orders").as_uri(),
            error_uri=(folder / "lake" / "_errors").as_uri(),
            record_key=("id",) if self.is_global else ("id", "day"),
            reference_key="changed_at",
            partition_column="day",
            index=self.index,
            global_index=self.global_index,
        )


@dataclass(frozen=True)
class Hudi:
    """`df.write.format("hudi")` with the operation `upsert`: no reading of a source, no sum, no checkpoint."""

    name: str
    options: tuple[tuple[str, str], ...]
    is_global: bool = True
    most_rows: float = inf

    def load(self, spark: SparkSession, folder: Path, loaded: DataFrame) -> None:
        use_hadoops_files(spark)
        self._write(loaded, folder, "bulk_insert")

    def prepare(self, folder: Path, orders: Sequence[Order]) -> None:
        rows.to_parquet(folder / CHANGED, orders)

    def upsert(self, spark: SparkSession, folder: Path, number: int) -> Mapping[str, float]:
        self._write(rows.of_parquet(spark, folder / CHANGED), folder, "upsert")
        return {}

    def _write(self, frame: DataFrame, folder: Path, operation: str) -> None:
        frame.write.format("hudi").options(**HUDI_OPTIONS).options(**dict(self.options)).option(
            "hoodie.datasource.write.operation", operation
        ).mode("append").save((folder / "lake" / "orders").as_uri())


HUDI_OPTIONS: Mapping[str, str] = {
    "hoodie.table.name": "orders",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.table.ordering.fields": "changed_at",
    "hoodie.embed.timeline.server": "false",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.parquet.bloom.filter.enabled": "false",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
}
"""Its defaults, but for what makes it faster on a small machine. Its files are compressed with gzip, ours with zstd."""
RECORD_INDEX = Hudi(
    "Hudi, record index",
    (
        ("hoodie.metadata.enable", "true"),
        ("hoodie.metadata.record.index.enable", "true"),
        ("hoodie.index.type", "RECORD_INDEX"),
    ),
)
GLOBAL_SIMPLE = Hudi(
    "Hudi, GLOBAL_SIMPLE", (("hoodie.metadata.enable", "false"), ("hoodie.index.type", "GLOBAL_SIMPLE"))
)
GLOBAL_BLOOM = Hudi(
    "Hudi, GLOBAL_BLOOM",
    (
        ("hoodie.metadata.enable", "false"),
        ("hoodie.index.type", "GLOBAL_BLOOM"),
        ("hoodie.parquet.bloom.filter.enabled", "true"),
    ),
)
CONTENDERS: tuple[Contender, ...] = (
    Lakehub("memory"),
    Lakehub("record_index"),
    Lakehub("simple", is_global=False),
    RECORD_INDEX,
    GLOBAL_SIMPLE,
    Hudi(
        "Hudi, bucket",
        (
            ("hoodie.metadata.enable", "false"),
            ("hoodie.index.type", "BUCKET"),
            ("hoodie.bucket.index.num.buckets", "1"),
        ),
        is_global=False,
    ),
)
