"""Hudi's own record index, in the metadata table: for tables that are too large to be read for each batch.

It knows where each key lives. So where a key does not say its partition only the partitions are read that hold keys of the batch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import BaseFile, FileGroup
from ingestion.spark.file_groups.batch_keys import BatchKeys
from ingestion.spark.file_groups.lookups import ASK_BY_BLOCK, file_groups_of_keys, newest_files_of
from ingestion.spark.file_groups.metadata_table import (
    build_metadata_table,
    compact_metadata_table,
    record_index_entries,
    remove_metadata_table,
)
from ingestion.spark.indexes import Permit, WholeIndex
from ingestion.spark.tables.hudi import has_metadata_table, read_table
from ingestion.spark.tables.timeline import Timeline

_MANY_ROWS = 50_000
"""Of fewer the logs of the index are read in no time."""


class RecordIndex(WholeIndex):
    def write_options(self, table: TableSpec) -> dict[str, str]:
        return {
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.record.index.enable": "true",
            "hoodie.index.type": "RECORD_INDEX",
            "hoodie.record.index.update.partition.path": "true",
            **ASK_BY_BLOCK,
        }

    def prepare(self, spark: SparkSession, table: TableSpec) -> None:
        """Commits keep it up."""

    def settle(self, spark: SparkSession, table: TableSpec, rows: int) -> None:
        if rows >= _MANY_ROWS:
            compact_metadata_table(spark, table, self.write_options(table))

    def is_up_to_date(self, table: TableSpec) -> bool:
        """The next commit builds it where the table was written without."""
        partitions = Timeline(table.uri).properties.get("hoodie.table.metadata.partitions", "")
        return has_metadata_table(table.uri) and "record_index" in partitions.split(",")

    def entries(self, spark: SparkSession, table: TableSpec, scratch: str) -> DataFrame | None:
        """Of a table that is not indexed yet none are missing: the next commit builds the index."""
        return record_index_entries(spark, table.uri) if self.is_up_to_date(table) else None

    def rebuild(self, spark: SparkSession, table: TableSpec, permit: Permit = nullcontext) -> None:
        """Within the permit as a whole: the table format keeps no commit of others beside it. Where it ends in between, the next commit builds the index."""
        with permit():
            remove_metadata_table(spark, table.uri)
            build_metadata_table(spark, table, self.write_options(table))

    def limitation(self, table: TableSpec) -> str | None:
        return ""

    def stored_rows(self, spark: SparkSession, table: TableSpec, batch: BatchKeys) -> DataFrame:
        return batch.in_located_partitions(read_table(spark, table), partial(self._locate, spark, table))

    def base_files(
        self, spark: SparkSession, table: TableSpec, keys: Sequence[str], partitions: Collection[str]
    ) -> Sequence[BaseFile] | None:
        if not keys:
            return [] if self.is_up_to_date(table) else None
        groups = self._locate(spark, table, keys)
        if groups is None:
            return None
        return newest_files_of(spark, table.uri, groups)

    def _locate(self, spark: SparkSession, table: TableSpec, keys: Sequence[str]) -> set[FileGroup] | None:
        """None: the next commit builds the index."""
        return file_groups_of_keys(spark, table.uri, keys) if self.is_up_to_date(table) else None
