"""What becomes of each row of a batch, by columns: the twin of `ingestion.domain.accounting.fates_of`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingestion.domain.accounting import RowCounts, RowFate
from ingestion.domain.schema import Schema
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.loading.staging import SEQUENCE_COLUMN
from ingestion.spark.tables.hudi import META_COLUMNS

FATE_COLUMN = "_lakehub_fate"
_RANK_COLUMN, _WINNER_COLUMN, _STORED_COLUMN = "_lakehub_rank", "_lakehub_winner", "_lakehub_stored"


@dataclass(frozen=True)
class FateCounts:
    """Events by fate, and the rows applied by partition ("" for a table without)."""

    counts: RowCounts
    applied: dict[str, int]

    @classmethod
    def of_errors(cls, read: int, errors: int) -> FateCounts:
        """A batch with no row that fits."""
        return cls(RowCounts(read=read, errors=errors), {})


def assign_fates(batch: DataFrame, table: TableSpec, target: Schema, stored: DataFrame | None) -> DataFrame:
    """Each row of `batch` with its fate, the stored row's location (null for a new key) and all columns of `target`.

    A column that the batch lacks keeps its stored value, null for a new key.
    """
    arriving = [name for name in target.names if name in batch.columns]
    ranked = _rank_by_key(batch, table, arriving)
    joined = _join_stored(ranked, table, target, stored)
    values = [_value_expression(name, type_, arriving) for name, type_ in target.types.items()]
    return joined.select(*META_COLUMNS, *values, _fate_expression(table, arriving).alias(FATE_COLUMN))


def keys_of_batch(batch: DataFrame, table: TableSpec, target: Schema) -> DataFrame:
    """In the types of the table."""
    return batch.select(*(F.col(name).cast(target.types[name]).alias(name) for name in table.record_key))


def stored_rows_of_batch(keys: DataFrame, stored: DataFrame, table: TableSpec) -> DataFrame:
    """The stored rows whose keys are in a small batch, without moving the others."""
    return stored.join(F.broadcast(keys), list(table.record_key), "left_semi")


def count_fates(judged: DataFrame, table: TableSpec, *, read: int, errors: int) -> FateCounts:
    """One pass over the judged rows; bounded by the number of partitions."""
    partition = F.col(table.partition_column) if table.partition_column else F.lit("")
    groups = judged.groupBy(FATE_COLUMN, partition.alias("partition")).count().collect()
    by_fate = {fate: sum(row["count"] for row in groups if row[FATE_COLUMN] == fate) for fate in RowFate}
    counts = RowCounts(
        read, by_fate[RowFate.APPLIED], by_fate[RowFate.SUPERSEDED], by_fate[RowFate.REDELIVERED], errors
    )
    return FateCounts(counts, {row["partition"]: row["count"] for row in groups if row[FATE_COLUMN] == RowFate.APPLIED})


def applied_rows(judged: DataFrame) -> DataFrame:
    return judged.where(F.col(FATE_COLUMN) == RowFate.APPLIED).drop(FATE_COLUMN)


def _rank_by_key(batch: DataFrame, table: TableSpec, columns: Collection[str]) -> DataFrame:
    """Within a key the greater reference key leads, and of equals the row that was read later."""
    order = [F.col(SEQUENCE_COLUMN).desc()]
    if table.reference_key is not None:
        order = [F.col(table.reference_key).desc(), *order]
    window = Window.partitionBy(*table.record_key).orderBy(*order)
    leader = F.first(_row_struct(columns)).over(window)
    return batch.withColumn(_RANK_COLUMN, F.row_number().over(window)).withColumn(_WINNER_COLUMN, leader)


def _join_stored(ranked: DataFrame, table: TableSpec, target: Schema, stored: DataFrame | None) -> DataFrame:
    if stored is None:
        absent = [F.lit(None).cast("string").alias(name) for name in META_COLUMNS]
        return ranked.select("*", *absent, F.lit(None).cast(_struct_type(target)).alias(_STORED_COLUMN))
    stored_columns = [
        F.col(name).cast(type_).alias(name) if name in stored.columns else F.lit(None).cast(type_).alias(name)
        for name, type_ in target.types.items()
    ]
    keys = [F.col(name).cast(target.types[name]).alias(name) for name in table.record_key]
    lookup = stored.select(*keys, *META_COLUMNS, F.struct(*stored_columns).alias(_STORED_COLUMN))
    return ranked.join(lookup, list(table.record_key), "left")


def _fate_expression(table: TableSpec, arriving: Collection[str]) -> Column:
    row, winner = _row_struct(arriving), F.col(_WINNER_COLUMN)
    stored_row = F.struct(*(F.col(_STORED_COLUMN)[name].alias(name) for name in arriving))
    loses = F.col(_RANK_COLUMN) > 1
    is_new = F.col("_hoodie_record_key").isNull()
    older = F.lit(False)
    if table.reference_key is not None:
        older = F.coalesce(F.col(_STORED_COLUMN)[table.reference_key] > F.col(table.reference_key), F.lit(False))
    return (
        F.when(loses & row.eqNullSafe(winner), RowFate.REDELIVERED)
        .when(loses, RowFate.SUPERSEDED)
        .when(is_new, RowFate.APPLIED)
        .when(older, RowFate.SUPERSEDED)
        .when(row.eqNullSafe(stored_row), RowFate.REDELIVERED)
        .otherwise(RowFate.APPLIED)
    )


def _value_expression(name: str, type_: str, arriving: Collection[str]) -> Column:
    """Nullable always: a table's columns stay nullable, so that a later batch may lack them."""
    if name not in arriving:
        return F.col(_STORED_COLUMN)[name].cast(type_).alias(name)
    return F.when(F.lit(True), F.col(name).cast(type_)).alias(name)


def _row_struct(columns: Collection[str]) -> Column:
    return F.struct(*(F.col(name).alias(name) for name in columns))


def _struct_type(schema: Schema) -> str:
    return f"struct<{','.join(f'`{name}`:{type_}' for name, type_ in schema.types.items())}>"
