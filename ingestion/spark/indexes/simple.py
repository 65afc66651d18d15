"""No index at all: the stored rows of the partitions touched are read, and tell where each key lives.

Quickest for tables of a few million rows (docs/ingestion.md has the numbers): the same scan serves the accounting, so Hudi's own look-up is skipped (a prepped upsert)
and there is no metadata table to keep up.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.indexes import key_determines_partition
from ingestion.spark.tables.hudi import META_COLUMNS, read_table


class SimpleIndex:
    def write_options(self, table: TableSpec) -> dict[str, str]:
        options = {"hoodie.metadata.enable": "false"}
        if key_determines_partition(table):
            return options | {"hoodie.index.type": "SIMPLE"}
        return options | {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}

    def stored_rows(self, spark: SparkSession, table: TableSpec, partitions: Collection[str] | None) -> DataFrame:
        rows = read_table(spark, table)
        if table.partition_column is None or partitions is None or not key_determines_partition(table):
            return rows
        return rows.where(F.col(table.partition_column).isin(*partitions))

    def tag_locations(self, rows: DataFrame, table: TableSpec) -> tuple[DataFrame, dict[str, str]]:
        values = [name for name in rows.columns if name not in META_COLUMNS]
        if not key_determines_partition(table):
            return rows.select(*values), {}
        return rows.select(*_location_columns(table), *values), {"_hoodie.spark.sql.writes.prepped": "true"}


def _location_columns(table: TableSpec) -> list[Column]:
    """The stored row's location; for a new key its partition, and nothing else. All are nullable: Hudi's schema check wants it so."""
    key, partition = F.col("_hoodie_record_key"), F.col("_hoodie_partition_path")
    return [
        F.col("_hoodie_commit_time"),
        F.lit(None).cast("string").alias("_hoodie_commit_seqno"),
        _as_nullable(F.coalesce(key, _record_key(table))).alias("_hoodie_record_key"),
        _as_nullable(F.coalesce(partition, _partition_path(table))).alias("_hoodie_partition_path"),
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


def _as_nullable(column: Column) -> Column:
    return F.when(F.lit(True), column)
