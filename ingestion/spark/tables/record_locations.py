"""Where a row lives, in the columns by which Hudi writes it there without looking it up (a prepped upsert)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.tables.hudi import META_COLUMNS

PREPPED = {"_hoodie.spark.sql.writes.prepped": "true"}


def key_determines_partition(table: TableSpec) -> bool:
    """A key can only lie in one partition: the table has none, or the partition column is a part of the key."""
    return table.partition_column is None or table.partition_column in table.record_key


def with_locations(rows: DataFrame, table: TableSpec) -> DataFrame:
    """Rows joined with the location of the stored row (Hudi's own columns, null for a new key) -> the frame of a prepped upsert.

    No row may move: of one that does, the stored row would stay where it is as well.
    """
    return rows.select(*_location_columns(table), *(name for name in rows.columns if name not in META_COLUMNS))


def without_locations(rows: DataFrame) -> DataFrame:
    """For Hudi to look up itself."""
    return rows.drop(*META_COLUMNS)


def record_key(table: TableSpec) -> Column:
    """As Hudi's key generators write it."""
    if len(table.record_key) == 1:
        return F.col(table.record_key[0]).cast("string")
    return F.concat_ws(",", *(F.concat(F.lit(f"{name}:"), F.col(name).cast("string")) for name in table.record_key))


def _partition_path(table: TableSpec) -> Column:
    if table.partition_column is None:
        return F.lit("")
    return F.concat(F.lit(f"{table.partition_column}="), F.col(table.partition_column))


def _location_columns(table: TableSpec) -> list[Column]:
    """The stored row's location; for a new key its partition, and nothing else. All are nullable: Hudi's schema check wants it so."""
    key, partition = F.col("_hoodie_record_key"), F.col("_hoodie_partition_path")
    return [
        F.col("_hoodie_commit_time"),
        F.lit(None).cast("string").alias("_hoodie_commit_seqno"),
        _as_nullable(F.coalesce(key, record_key(table))).alias("_hoodie_record_key"),
        _as_nullable(F.coalesce(partition, _partition_path(table))).alias("_hoodie_partition_path"),
        F.col("_hoodie_file_name"),
    ]


def _as_nullable(column: Column) -> Column:
    return F.when(F.lit(True), column)
