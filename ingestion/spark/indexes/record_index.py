"""Hudi's own record index, in the metadata table: for tables whose partitions are too large to be scanned for each batch."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.indexes import key_determines_partition
from ingestion.spark.tables.hudi import META_COLUMNS, read_table


class RecordIndex:
    def write_options(self, table: TableSpec) -> dict[str, str]:
        return {
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.record.index.enable": "true",
            "hoodie.index.type": "RECORD_INDEX",
            "hoodie.record.index.update.partition.path": "true",
        }

    def stored_rows(self, spark: SparkSession, table: TableSpec, partitions: Collection[str] | None) -> DataFrame:
        rows = read_table(spark, table)
        if table.partition_column is None or partitions is None or not key_determines_partition(table):
            return rows
        return rows.where(F.col(table.partition_column).isin(*partitions))

    def tag_locations(self, rows: DataFrame, table: TableSpec) -> tuple[DataFrame, dict[str, str]]:
        """Hudi looks the keys up itself."""
        return rows.select(*(name for name in rows.columns if name not in META_COLUMNS)), {}
