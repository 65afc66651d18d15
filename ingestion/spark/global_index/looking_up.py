"""Where the keys of a batch lie that is Spark's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ingestion.index.client import IndexClient
from ingestion.index.patient_client import BATCH
from ingestion.spark.contract.spec import GlobalIndexSpec, TableSpec
from ingestion.spark.file_groups import FileGroup
from ingestion.spark.file_groups.batch_keys import BatchKeys
from ingestion.spark.file_groups.record_locations import (
    is_certain_type,
    is_empty_key,
    record_key,
    stored_file_id,
)
from ingestion.spark.global_index.job_use import at_work
from ingestion.spark.global_index.many_rows import answers_for, pieces_of

_LOCATED = "key string, partition string, file_id string"
_FILES_TOLD, _MOST_PARTS = 500, 16
"""To Parquet in one reading, and so many readings of a table at most: a batch that hits more files reads their partitions whole."""


def locate_batch(spark: SparkSession, spec: GlobalIndexSpec, table: TableSpec, batch: BatchKeys) -> DataFrame | None:
    """Those keys of the batch that have an entry: `key`, `partition` and `file_id`. None: how the table format writes its keys is not certain."""
    if not all(is_certain_type(type_) for _, type_ in batch.frame.dtypes):
        return None
    tasks = max(1, min(spark.sparkContext.defaultParallelism, -(-batch.rows // BATCH)))
    keys = spread_keys(batch, table, pieces_of(spec, batch.rows, tasks))
    with (
        answers_for(spark, spec, keys, _places_of, _LOCATED, tasks=tasks) as places,
        at_work().timed_tasks(),
    ):
        # Asked once, and kept on the disks for as long as somebody has the frame.
        located = places.localCheckpoint(eager=True)
    return None if located.where(F.col("key").isNull()).take(1) else located


def groups_in(located: DataFrame) -> set[FileGroup]:
    """Those that `locate_batch` has found keys in."""
    return {FileGroup(*row) for row in located.select("partition", "file_id").distinct().collect()}


def spread_keys(batch: BatchKeys, table: TableSpec, pieces: int) -> DataFrame:
    """`key`, null for one that cannot be asked for: each piece has keys from all over the table at any time, as `ingestion.index.entries.spread` says."""
    keys = batch.frame.select(F.when(~is_empty_key(table), record_key(table)).alias("key"))
    return keys.repartition(pieces, "key").sortWithinPartitions(F.xxhash64("key"))


def _places_of(client: IndexClient, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Keys -> those that have an entry, with their place. One that is null, for which the table format has a word of its own, is handed on."""
    for batch in batches:
        keys = batch["key"].drop_null().to_pylist()
        entries = client.get(keys)
        rows: list[tuple[str | None, ...]] = [(key, at.partition, at.file_id) for key, at in entries.items()]
        rows += [(None, None, None)] if len(keys) < batch.num_rows else []
        columns = [pa.array([row[place] for row in rows], pa.string()) for place in range(3)]
        yield pa.RecordBatch.from_arrays(columns, ["key", "partition", "file_id"])


def rows_of_groups(rows: DataFrame, table: TableSpec, groups: set[FileGroup]) -> DataFrame:
    """Of the partitions that have some of the groups, and of these the rows in them. Of other files there Spark reads the footers, where the groups are not too many for
    Parquet to be told of."""
    ordered = sorted(groups, key=lambda group: (group.partition, group.file_id))
    if len(ordered) > _FILES_TOLD * _MOST_PARTS:
        return _rows_in(rows, table, ordered)
    parts = [ordered[begin : begin + _FILES_TOLD] for begin in range(0, len(ordered), _FILES_TOLD)]
    return reduce(
        DataFrame.unionByName, [_rows_in(rows, table, part).where(_is_in_file(part)) for part in parts or [[]]]
    )


def _rows_in(rows: DataFrame, table: TableSpec, groups: Sequence[FileGroup]) -> DataFrame:
    in_groups = rows.where(stored_file_id().isin(*{group.file_id for group in groups}))
    if table.partition_column is None:
        return in_groups
    values = {group.partition.partition("=")[2] for group in groups}
    return in_groups.where(F.col(table.partition_column).isin(*values))


def _is_in_file(groups: Sequence[FileGroup]) -> Column:
    """What Parquet compares with the least and the greatest name that a file has: all of its rows have one that begins alike. A tree, as a chain would be too deep."""
    names = [F.col("_hoodie_file_name").startswith(group.file_id) for group in groups] or [F.lit(False)]
    while len(names) > 1:
        names = [reduce(or_, names[at : at + 2]) for at in range(0, len(names), 2)]
    return names[0]
