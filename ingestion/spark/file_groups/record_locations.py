"""Where a row lives, in the columns by which Hudi writes it there without looking it up (a prepped upsert)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingestion.domain.schema import Schema
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups.lookups import SEPARATOR
from ingestion.spark.tables.hudi import META_COLUMNS

PREPPED = {"_hoodie.spark.sql.writes.prepped": "true"}
_REMOVED = "/"
"""What the partition column of a row says that is to be removed: no partition has this name."""
_CERTAIN_TYPE = re.compile(r"string|int|long|bigint|decimal\(\d+,\s*0\)")
"""Of the schema or of Spark."""


def has_certain_keys(table: TableSpec, schema: Schema) -> bool:
    """Hudi writes keys of these types as Spark casts them to text, but for an empty text, for which it has a word of its own.

    A key that is written otherwise is not met when Hudi looks it up, and is inserted twice.
    """
    types = schema.types
    return all(is_certain_type(types[name]) for name in table.record_key)


def is_certain_type(type_: str) -> bool:
    """Whole decimals are what unsigned integers of 64 bits become."""
    return _CERTAIN_TYPE.fullmatch(type_) is not None


def is_empty_key(table: TableSpec) -> Column:
    """Is a part of the key an empty text?"""
    return reduce(or_, (F.col(name).cast("string") == "" for name in table.record_key))


def stored_file_id() -> Column:
    """Of a stored row: the id of the file group that it lies in."""
    return F.substring_index("_hoodie_file_name", "_", 1)


def key_determines_partition(table: TableSpec) -> bool:
    """A key can only lie in one partition: the table has none, or the partition column is a part of the key."""
    return table.partition_column is None or table.partition_column in table.record_key


def kept_partition_column(table: TableSpec) -> str | None:
    """Whose value stored rows keep, whatever the source says of it later. None: a row goes to where its value says."""
    return table.partition_column if table.keys_stay and not key_determines_partition(table) else None


def options_without_index(table: TableSpec) -> dict[str, str]:
    """Of a table without a metadata table: how Hudi looks keys up where it has to do so itself."""
    options = {"hoodie.metadata.enable": "false"}
    if key_determines_partition(table):
        return options | {"hoodie.index.type": "SIMPLE"}
    return options | {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}


def with_locations(rows: DataFrame, table: TableSpec) -> DataFrame:
    """Rows joined with the location of the stored row (Hudi's own columns, null for a new key) -> the frame of a prepped upsert.

    No row may move: of one that does, the stored row would stay where it is as well.
    """
    return rows.select(*_location_columns(table), *(name for name in rows.columns if name not in META_COLUMNS))


def with_moves(rows: DataFrame, table: TableSpec) -> tuple[DataFrame, dict[str, str]]:
    """The same where rows move, each of which is removed from where it was and new where it goes. With the options that it takes."""
    column = table.partition_column
    assert column is not None, "Rows move between partitions."
    moves = F.coalesce(F.col("_hoodie_partition_path") != partition_path(table), F.lit(False))
    removed = with_locations(rows.where(moves), table).withColumn(column, F.lit(_REMOVED))
    placed = with_locations(rows.withColumns({name: F.when(~moves, F.col(name)) for name in META_COLUMNS}), table)
    return placed.union(removed), PREPPED | {
        "hoodie.payload.delete.field": column,
        "hoodie.payload.delete.marker": _REMOVED,
        # As rows are written each tells Hudi's record index of itself, and a key that is removed last is gone from it. After the commit both are seen.
        "hoodie.metadata.streaming.write.enabled": "false",
    }


def without_locations(rows: DataFrame) -> DataFrame:
    """For Hudi to look up itself."""
    return rows.drop(*META_COLUMNS)


def record_key(table: TableSpec) -> Column:
    """As Hudi's key generators write it."""
    if len(table.record_key) == 1:
        return F.col(table.record_key[0]).cast("string")
    return F.concat_ws(",", *(F.concat(F.lit(f"{name}:"), F.col(name).cast("string")) for name in table.record_key))


def key_text(values: Sequence[str], table: TableSpec) -> str | None:
    """The same of one record, whose key has these texts; None where it is not certain: Hudi has a word of its own for an empty text."""
    if any(not value or SEPARATOR in value for value in values):
        return None
    if len(table.record_key) == 1:
        return values[0]
    return ",".join(f"{name}:{value}" for name, value in zip(table.record_key, values, strict=True))


def partition_path(table: TableSpec) -> Column:
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
        _as_nullable(F.coalesce(partition, partition_path(table))).alias("_hoodie_partition_path"),
        F.col("_hoodie_file_name"),
    ]


def _as_nullable(column: Column) -> Column:
    return F.when(F.lit(True), column)
