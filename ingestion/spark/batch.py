"""What becomes of each row of a batch, by columns: the twin of `ingestion.domain.accounting.account`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingestion.domain.accounting import Counts, Fate
from ingestion.domain.schema import Schema
from ingestion.spark.spec import TableSpec
from ingestion.spark.staging import SEQUENCE
from ingestion.spark.tables.hudi import META_COLUMNS

FATE = "_lakehub_fate"
_RANK, _WINNER, _STORED = "_lakehub_rank", "_lakehub_winner", "_lakehub_stored"


@dataclass(frozen=True)
class Tally:
    """Events by fate, and the rows applied by partition ("" for a table without)."""

    counts: Counts
    applied: dict[str, int]

    @classmethod
    def of_errors(cls, read: int, errors: int) -> Tally:
        """A batch with no row that fits."""
        return cls(Counts(read=read, errors=errors), {})


def judge(batch: DataFrame, table: TableSpec, target: Schema, stored: DataFrame | None) -> DataFrame:
    """Each row of `batch` with its fate, the stored row's location (null for a new key) and all columns of `target`.

    A column that the batch lacks keeps its stored value, null for a new key.
    """
    arriving = [name for name in target.names if name in batch.columns]
    ranked = _rank(batch, table, arriving)
    joined = _join_stored(ranked, table, target, stored)
    values = [_value(name, type_, arriving) for name, type_ in target.types.items()]
    return joined.select(*META_COLUMNS, *values, _fate(table, arriving).alias(FATE))


def only_keys_of(batch: DataFrame, stored: DataFrame, table: TableSpec, target: Schema) -> DataFrame:
    """The stored rows whose keys are in a small batch, without moving the others."""
    keys = batch.select(*(F.col(name).cast(target.types[name]).alias(name) for name in table.record_key))
    return stored.join(F.broadcast(keys), list(table.record_key), "left_semi")


def tally(judged: DataFrame, table: TableSpec, *, read: int, errors: int) -> Tally:
    """One pass over the judged rows; bounded by the number of partitions."""
    partition = F.col(table.partition_column) if table.partition_column else F.lit("")
    found = judged.groupBy(FATE, partition.alias("partition")).count().collect()
    by_fate = {fate: sum(row["count"] for row in found if row[FATE] == fate) for fate in Fate}
    counts = Counts(read, by_fate[Fate.APPLIED], by_fate[Fate.SUPERSEDED], by_fate[Fate.REDELIVERED], errors)
    return Tally(counts, {row["partition"]: row["count"] for row in found if row[FATE] == Fate.APPLIED})


def applied(judged: DataFrame) -> DataFrame:
    return judged.where(F.col(FATE) == Fate.APPLIED).drop(FATE)


def _rank(batch: DataFrame, table: TableSpec, columns: Collection[str]) -> DataFrame:
    """Within a key the greater reference key leads, and of equals the row that was read later."""
    order = [F.col(SEQUENCE).desc()]
    if table.reference_key is not None:
        order = [F.col(table.reference_key).desc(), *order]
    window = Window.partitionBy(*table.record_key).orderBy(*order)
    leader = F.first(_row(columns)).over(window)
    return batch.withColumn(_RANK, F.row_number().over(window)).withColumn(_WINNER, leader)


def _join_stored(ranked: DataFrame, table: TableSpec, target: Schema, stored: DataFrame | None) -> DataFrame:
    if stored is None:
        absent = [F.lit(None).cast("string").alias(name) for name in META_COLUMNS]
        return ranked.select("*", *absent, F.lit(None).cast(_struct_type(target)).alias(_STORED))
    held = [
        F.col(name).cast(type_).alias(name) if name in stored.columns else F.lit(None).cast(type_).alias(name)
        for name, type_ in target.types.items()
    ]
    keys = [F.col(name).cast(target.types[name]).alias(name) for name in table.record_key]
    lookup = stored.select(*keys, *META_COLUMNS, F.struct(*held).alias(_STORED))
    return ranked.join(lookup, list(table.record_key), "left")


def _fate(table: TableSpec, arriving: Collection[str]) -> Column:
    row, winner = _row(arriving), F.col(_WINNER)
    held = F.struct(*(F.col(_STORED)[name].alias(name) for name in arriving))
    loses = F.col(_RANK) > 1
    is_new = F.col("_hoodie_record_key").isNull()
    older = F.lit(False)
    if table.reference_key is not None:
        older = F.coalesce(F.col(_STORED)[table.reference_key] > F.col(table.reference_key), F.lit(False))
    return (
        F.when(loses & row.eqNullSafe(winner), Fate.REDELIVERED)
        .when(loses, Fate.SUPERSEDED)
        .when(is_new, Fate.APPLIED)
        .when(older, Fate.SUPERSEDED)
        .when(row.eqNullSafe(held), Fate.REDELIVERED)
        .otherwise(Fate.APPLIED)
    )


def _value(name: str, type_: str, arriving: Collection[str]) -> Column:
    """Nullable always: a table's columns stay nullable, so that a later batch may lack them."""
    if name not in arriving:
        return F.col(_STORED)[name].cast(type_).alias(name)
    return F.when(F.lit(True), F.col(name).cast(type_)).alias(name)


def _row(columns: Collection[str]) -> Column:
    return F.struct(*(F.col(name).alias(name) for name in columns))


def _struct_type(schema: Schema) -> str:
    return f"struct<{','.join(f'`{name}`:{type_}' for name, type_ in schema.types.items())}>"
