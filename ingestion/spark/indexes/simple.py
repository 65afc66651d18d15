"""No index at all: the stored rows of the partitions touched are read, and tell where each key lives.

Quickest for tables of a few million rows (docs/ingestion.md has the numbers): there is no metadata table to keep up.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext

from pyspark.sql import DataFrame, SparkSession

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import BaseFile
from ingestion.spark.file_groups.batch_keys import BatchKeys
from ingestion.spark.file_groups.lookups import newest_base_files
from ingestion.spark.file_groups.record_locations import key_determines_partition, options_without_index
from ingestion.spark.indexes import Permit, WholeIndex
from ingestion.spark.tables.hudi import has_metadata_table, read_table


class SimpleIndex(WholeIndex):
    def write_options(self, table: TableSpec) -> dict[str, str]:
        return options_without_index(table)

    def prepare(self, spark: SparkSession, table: TableSpec) -> None:
        """There is nothing to prepare."""

    def settle(self, spark: SparkSession, table: TableSpec, rows: int) -> None:
        """Nothing is kept beside the table."""

    def is_up_to_date(self, table: TableSpec) -> bool:
        """A metadata table of another index is there until Spark's next commit removes it."""
        return not has_metadata_table(table.uri)

    def entries(self, spark: SparkSession, table: TableSpec, scratch: str) -> DataFrame | None:
        return None

    def rebuild(self, spark: SparkSession, table: TableSpec, permit: Permit = nullcontext) -> None:
        """Nothing is kept beside the table."""

    def limitation(self, table: TableSpec) -> str | None:
        return ""

    def stored_rows(self, spark: SparkSession, table: TableSpec, batch: BatchKeys) -> DataFrame:
        return batch.in_partitions(read_table(spark, table))

    def base_files(
        self, spark: SparkSession, table: TableSpec, keys: Sequence[str], partitions: Collection[str]
    ) -> Sequence[BaseFile] | None:
        if not self.is_up_to_date(table):
            return None
        if not keys:
            return []
        if not key_determines_partition(table):
            return None
        return newest_base_files(spark, table.uri, partitions)
