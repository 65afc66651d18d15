"""Hudi's own record index, in the metadata table: for tables that are too large to be read for each batch.

It knows where each key lives. So where a key does not say its partition only the partitions are read that hold keys of the batch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import BaseFile
from ingestion.spark.file_groups.batch_keys import BatchKeys
from ingestion.spark.file_groups.lookups import ASK_BY_BLOCK, file_groups_of_keys, newest_base_files
from ingestion.spark.file_groups.metadata_table import (
    build_metadata_table,
    compact_metadata_table,
    record_index_entries,
    remove_metadata_table,
)
from ingestion.spark.file_groups.record_locations import key_determines_partition
from ingestion.spark.tables.hudi import has_metadata_table, read_table
from ingestion.spark.tables.timeline import Timeline

_MANY_ROWS = 50_000
"""Of fewer the logs of the index are read in no time."""


class RecordIndex:
    def write_options(self, table: TableSpec) -> dict[str, str]:
        return {
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.record.index.enable": "true",
            "hoodie.index.type": "RECORD_INDEX",
            "hoodie.record.index.update.partition.path": "true",
            **ASK_BY_BLOCK,
        }

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

    def rebuild(self, spark: SparkSession, table: TableSpec) -> None:
        """Where it ends in between, the next commit builds the index."""
        remove_metadata_table(spark, table.uri)
        build_metadata_table(spark, table, self.write_options(table))

    def limitation(self, table: TableSpec) -> str | None:
        return ""

    def stored_rows(self, spark: SparkSession, table: TableSpec, batch: BatchKeys) -> DataFrame:
        rows = read_table(spark, table)
        if table.partition_column is None or key_determines_partition(table):
            return batch.in_partitions(rows)
        if not self.is_up_to_date(table) or batch.named is None:
            return rows
        paths = {group.partition for group in file_groups_of_keys(spark, table.uri, batch.named)}
        return rows.where(F.col(table.partition_column).isin(*(path.partition("=")[2] for path in paths)))

    def base_files(
        self, spark: SparkSession, table: TableSpec, keys: Sequence[str], partitions: Collection[str]
    ) -> Sequence[BaseFile] | None:
        if not self.is_up_to_date(table):
            return None
        if not keys:
            return []
        groups = file_groups_of_keys(spark, table.uri, keys)
        return [
            file
            for file in newest_base_files(spark, table.uri, {group.partition for group in groups})
            if file.group in groups
        ]
