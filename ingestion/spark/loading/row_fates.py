"""What becomes of each row of a batch, by columns: the twin of `ingestion.domain.accounting.fates_of`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ingestion.domain.accounting import RowCounts, RowFate
from ingestion.domain.column_types import parse_type
from ingestion.domain.schema import Schema
from ingestion.domain.write_races import WrittenSince
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups.record_locations import (
    is_empty_key,
    kept_partition_column,
    partition_path,
    record_key,
)
from ingestion.spark.loading.staging import SEQUENCE_COLUMN, TABLE_AT_COLUMN
from ingestion.spark.tables.hudi import META_COLUMNS
from ingestion.spark.tables.spark_columns import as_type, comparable, type_of_spark

FATE_COLUMN = "_lakehub_fate"
_RANK_COLUMN, _WINNER_COLUMN, _STORED_COLUMN = "_lakehub_rank", "_lakehub_winner", "_lakehub_stored"


@dataclass(frozen=True)
class FateCounts:
    """Events by fate. Of the rows applied: how many go to another partition than the stored row lies in, and how many have an
    empty text in their keys."""

    counts: RowCounts
    moved: int = 0
    empty_keys: int = 0


def assign_fates(
    batch: DataFrame,
    table: TableSpec,
    target: Schema,
    stored: DataFrame | None,
    since: WrittenSince | None = None,
) -> DataFrame:
    """Each row of `batch` with its fate, the stored row's location (null for a new key) and all columns of `target`.

    A column that the batch lacks keeps its stored value, null for a new key. Stored rows that were written `since` the batch was read
    stand, unless the batch has a greater reference key. Replayed rows say themselves since when.
    """
    arriving = [name for name in target.names if name in batch.columns]
    ranked = _rank_by_key(batch, table, {name: target.types[name] for name in arriving})
    joined = _where_stored(_join_stored(ranked, table, target, stored), table)
    values = [_value_expression(name, type_, arriving) for name, type_ in target.types.items()]
    began = F.col(TABLE_AT_COLUMN) if TABLE_AT_COLUMN in batch.columns else F.lit(since and since.began)
    fate = _fate_expression(table, arriving, target, since, began).alias(FATE_COLUMN)
    return joined.select(*META_COLUMNS, *values, fate)


def keys_of_batch(batch: DataFrame, table: TableSpec, target: Schema) -> DataFrame:
    """In the types of the table."""
    return batch.select(*(F.col(name).cast(target.types[name]).alias(name) for name in table.record_key))


def has_each_key_once(batch: DataFrame, table: TableSpec, target: Schema, rows: int) -> bool:
    """A batch of so many rows, by the hashes of the keys, which take a third of the time of a look at the rows in the order of their keys.
    False also where two keys have one hash, which is rare, and where the batch has another number of rows."""
    keys = keys_of_batch(batch, table, target)
    hashes = keys.select(F.xxhash64(*keys.columns).alias("hash")).groupBy("hash").count()
    counted = hashes.agg(F.count("*").alias("keys"), F.sum("count").alias("rows")).first()
    return counted is not None and (counted["keys"], counted["rows"]) == (rows, rows)


def rows_as_in_table(batch: DataFrame, target: Schema) -> DataFrame:
    """With all columns of `target`, null where the batch lacks them."""
    return batch.select(
        *(
            _nullable(F.col(name).cast(type_), name) if name in batch.columns else F.lit(None).cast(type_).alias(name)
            for name, type_ in target.types.items()
        )
    )


def rows_in_ranges(batch: DataFrame, ranges: Sequence[range]) -> DataFrame:
    """Those whose sequence lies in one of the ranges."""
    sequence = F.col(SEQUENCE_COLUMN)
    return batch.where(reduce(or_, (sequence.between(part.start, part.stop - 1) for part in ranges)))


def newest_of_each_key(stored: DataFrame, table: TableSpec) -> DataFrame:
    """An append-only table may hold a key twice, where the source changed a row after all: what came last counts."""
    newest = Window.partitionBy(*table.record_key).orderBy(F.desc("_hoodie_commit_time"), F.desc("_hoodie_file_name"))
    return stored.withColumn(_RANK_COLUMN, F.row_number().over(newest)).where(f"{_RANK_COLUMN} = 1").drop(_RANK_COLUMN)


def stored_rows_of_batch(keys: DataFrame, stored: DataFrame, table: TableSpec) -> DataFrame:
    """The stored rows whose keys are in a small batch, without moving the others."""
    return stored.join(F.broadcast(keys), list(table.record_key), "left_semi")


def count_fates(judged: DataFrame, table: TableSpec, *, read: int, errors: int) -> FateCounts:
    """One pass over the judged rows."""
    stored_at = F.col("_hoodie_partition_path")
    moves = F.sum(F.when(stored_at.isNotNull() & (stored_at != partition_path(table)), 1).otherwise(0))
    empty = F.sum(F.when(is_empty_key(table), 1).otherwise(0))
    counts = (F.count("*").alias("rows"), moves.alias("moved"), empty.alias("empty"))
    groups = judged.groupBy(FATE_COLUMN).agg(*counts).collect()
    rows, moved, empty_keys = (
        {group[FATE_COLUMN]: group[name] for group in groups} for name in ("rows", "moved", "empty")
    )
    applied, superseded, redelivered = (
        rows.get(fate, 0) for fate in (RowFate.APPLIED, RowFate.SUPERSEDED, RowFate.REDELIVERED)
    )
    counted = RowCounts(read, applied, superseded, redelivered, errors)
    return FateCounts(counted, moved.get(RowFate.APPLIED, 0), empty_keys.get(RowFate.APPLIED, 0))


def applied_rows(judged: DataFrame) -> DataFrame:
    return judged.where(F.col(FATE_COLUMN) == RowFate.APPLIED).drop(FATE_COLUMN)


def new_keys(judged: DataFrame, table: TableSpec) -> DataFrame:
    """`key`: of the rows applied for which no stored row was found, as Hudi writes it; without those that have an empty text, for which it has a word of its own."""
    new = applied_rows(judged).where(F.col("_hoodie_record_key").isNull() & ~is_empty_key(table))
    return new.select(record_key(table).alias("key"))


def _rank_by_key(batch: DataFrame, table: TableSpec, types: Mapping[str, str]) -> DataFrame:
    """Within a key the greater reference key leads, and of equals the row that was read later."""
    order = [F.col(SEQUENCE_COLUMN).desc()]
    if table.reference_key is not None:
        order = [F.col(table.reference_key).desc(), *order]
    window = Window.partitionBy(*table.record_key).orderBy(*order)
    leader = F.first(_row_struct(types)).over(window)
    return batch.withColumn(_RANK_COLUMN, F.row_number().over(window)).withColumn(_WINNER_COLUMN, leader)


def _join_stored(ranked: DataFrame, table: TableSpec, target: Schema, stored: DataFrame | None) -> DataFrame:
    if stored is None:
        absent = [F.lit(None).cast("string").alias(name) for name in META_COLUMNS]
        return ranked.select("*", *absent, F.lit(None).cast(_struct_type(target)).alias(_STORED_COLUMN))
    stored_columns = [
        (_stored_value(stored, name, type_) if name in stored.columns else F.lit(None).cast(type_)).alias(name)
        for name, type_ in target.types.items()
    ]
    keys = [F.col(name).cast(target.types[name]).alias(name) for name in table.record_key]
    lookup = stored.select(*keys, *META_COLUMNS, F.struct(*stored_columns).alias(_STORED_COLUMN))
    return ranked.join(lookup, list(table.record_key), "left")


def _where_stored(joined: DataFrame, table: TableSpec) -> DataFrame:
    """Where keys stay, with the partition value of the stored row, and so in the row that leads the key."""
    column = kept_partition_column(table)
    if column is None:
        return joined
    kept, winner = F.col(_STORED_COLUMN)[column], F.col(_WINNER_COLUMN)
    return joined.withColumns(
        {
            column: F.coalesce(kept, F.col(column)),
            _WINNER_COLUMN: winner.withField(column, F.coalesce(kept, winner[column])),
        }
    )


def _stored_value(stored: DataFrame, name: str, type_: str) -> Column:
    return as_type(F.col(name), type_of_spark(stored.schema[name].dataType), parse_type(type_))


def _fate_expression(
    table: TableSpec, arriving: Collection[str], target: Schema, since: WrittenSince | None, began: Column
) -> Column:
    types = {name: target.types[name] for name in arriving}
    row, winner = _row_struct(types), F.col(_WINNER_COLUMN)
    stored_row = _row_struct(types, F.col(_STORED_COLUMN))
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
        .when(_stands(table, since, began), RowFate.SUPERSEDED)
        .otherwise(RowFate.APPLIED)
    )


def _stands(table: TableSpec, since: WrittenSince | None, began: Column) -> Column:
    """The stored row was written since the batch was read, and the batch does not show that it is newer."""
    if since is None:
        return F.lit(False)
    written_at = F.col("_hoodie_commit_time")
    is_since = (written_at > began) | written_at.isin(*since.overlapping)
    if table.reference_key is None:
        return is_since
    greater = F.coalesce(F.col(table.reference_key) > F.col(_STORED_COLUMN)[table.reference_key], F.lit(False))
    return is_since & ~greater


def _value_expression(name: str, type_: str, arriving: Collection[str]) -> Column:
    if name not in arriving:
        return F.col(_STORED_COLUMN)[name].cast(type_).alias(name)
    return _nullable(F.col(name).cast(type_), name)


def _nullable(value: Column, name: str) -> Column:
    """Always: a table's columns stay nullable, so that a later batch may lack them."""
    return F.when(F.lit(True), value).alias(name)


def _row_struct(types: Mapping[str, str], row: Column | None = None) -> Column:
    """What rows are compared by: the columns of the frame, or of the structure `row`."""
    columns = {name: F.col(name) if row is None else row[name] for name in types}
    return F.struct(*(comparable(columns[name], parse_type(type_)).alias(name) for name, type_ in types.items()))


def _struct_type(schema: Schema) -> str:
    return f"struct<{','.join(f'`{name}`:{type_}' for name, type_ in schema.types.items())}>"
