"""No index at all: the stored rows of the partitions touched are read, and tell where each key lives.

Quickest for tables of a few million rows (docs/ingestion.md has the numbers): the same scan serves the accounting, so Hudi's own look-up is skipped (a prepped upsert)
and there is no metadata table to keep up.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ingestion.spark.indexes import keys_name_their_partition
from ingestion.spark.spec import TableSpec
from ingestion.spark.tables.hudi import META_COLUMNS, read


class SimpleIndex:
    def options(self, table: TableSpec) -> dict[str, str]:
        options = {"hoodie.metadata.enable": "false"}
        if keys_name_their_partition(table):
            return options | {"hoodie.index.type": "SIMPLE"}
        return options | {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}

    def stored(self, spark: SparkSession, table: TableSpec, partitions: Collection[str] | None) -> DataFrame:
        rows = read(spark, table)
        if table.partition_column is None or partitions is None or not keys_name_their_partition(table):
            return rows
        return rows.where(F.col(table.partition_column).isin(*partitions))

    def place(self, rows: DataFrame, table: TableSpec) -> tuple[DataFrame, dict[str, str]]:
        values = [name for name in rows.columns if name not in META_COLUMNS]
        if not keys_name_their_partition(table):
            return rows.select(*values), {}
        return rows.select(*_location(table), *values), {"_hoodie.spark.sql.writes.prepped": "true"}


def _location(table: TableSpec) -> list[Column]:
    """The stored row's location; for a new key its partition, and nothing else. All are nullable: Hudi's schema check wants it so."""
    key, partition = F.col("_hoodie_record_key"), F.col("_hoodie_partition_path")
    return [
        F.col("_hoodie_commit_time"),
        F.lit(None).cast("string").alias("_hoodie_commit_seqno"),
        _nullable(F.coalesce(key, _record_key(table))).alias("_hoodie_record_key"),
        _nullable(F.coalesce(partition, _partition_path(table))).alias("_hoodie_partition_path"),
        F.col("_hoodie_file_name"),
    ]


def _record_key(table: TableSpec) -> Column:
    """As Hudi's key generators write it."""
    if len(table.record_key) == 1:
        return F.col(table.record_key[0]).cast("string")
    return F.concat_ws(",", *(F.concat(F.lit(f"{name}:"), F.col(name).cast("string")) for name in table.record_key))


def _partition_path(table: TableSpec) -> Column:
    if table.partition_column is None:
        return F.lit("")
    return F.concat(F.lit(f"{table.partition_column}="), F.col(table.partition_column))


def _nullable(column: Column) -> Column:
    return F.when(F.lit(True), column)
