"""Where the keys of a batch lie: asked in the driver for a few of them, and in Spark's tasks for many, each within its part of what the job may send."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingestion.index.thrift_client import BATCH
from ingestion.spark.contract.spec import GlobalIndexSpec, TableSpec
from ingestion.spark.file_groups import FileGroup
from ingestion.spark.file_groups.batch_keys import BatchKeys
from ingestion.spark.file_groups.record_locations import (
    is_certain_type,
    is_empty_key,
    record_key,
    stored_file_id,
)
from ingestion.spark.global_index.job_use import TaskUse, at_work
from ingestion.spark.global_index.told_rate import open_task_client, told_rate

_LOCATED = "key string, partition string, file_id string"


def locate_batch(spark: SparkSession, spec: GlobalIndexSpec, table: TableSpec, batch: BatchKeys) -> DataFrame | None:
    """Those keys of the batch that have an entry: `key`, `partition` and `file_id`. None: how the table format writes its keys is not certain."""
    if not all(is_certain_type(type_) for _, type_ in batch.frame.dtypes):
        return None
    tasks = max(1, min(spark.sparkContext.defaultParallelism, -(-batch.rows // BATCH)))
    use, began = at_work().use_of_tasks(spark), time.monotonic()
    with rate_of_tasks(spec, tasks) as rate_uri:
        located = spread_keys(batch, table, tasks).mapInArrow(_asker(spec, rate_uri, use), _LOCATED)
        # Asked once, and kept on the disks for as long as somebody has the frame.
        located = located.localCheckpoint(eager=True)
    at_work().seconds_of_tasks += time.monotonic() - began
    return None if located.where(F.col("key").isNull()).take(1) else located


def groups_in(located: DataFrame) -> set[FileGroup]:
    """Those that `locate_batch` has found keys in."""
    return {FileGroup(*row) for row in located.select("partition", "file_id").distinct().collect()}


def spread_keys(batch: BatchKeys, table: TableSpec, tasks: int) -> DataFrame:
    """`key`, null for one that cannot be asked for: each task has keys from all over the table at any time, as `ingestion.index.entries.spread` says."""
    keys = batch.frame.select(F.when(~is_empty_key(table), record_key(table)).alias("key"))
    return keys.repartition(tasks, "key").sortWithinPartitions(F.xxhash64("key"))


@contextmanager
def rate_of_tasks(spec: GlobalIndexSpec, tasks: int) -> Iterator[str]:
    """Where each of them reads how fast it may ask; empty where any may ask as fast as it can."""
    use = at_work()
    if use.requests_per_s(spec) is None:
        yield ""
        return
    with told_rate(spec.staging_uri, spec.table, lambda: (use.requests_per_s(spec) or 0.0) / tasks) as uri:
        yield uri


def _asker(
    spec: GlobalIndexSpec, rate_uri: str, use: TaskUse
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """For `mapInArrow`: keys -> those that have an entry, with their place. One that is null, for which the table format has a word of its own, is handed on."""

    def ask(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        client = open_task_client(spec, rate_uri)
        try:
            for batch in batches:
                keys = batch["key"].drop_null().to_pylist()
                entries = client.get(keys)
                rows: list[tuple[str | None, ...]] = [(key, at.partition, at.file_id) for key, at in entries.items()]
                rows += [(None, None, None)] if len(keys) < batch.num_rows else []
                columns = [pa.array([row[place] for row in rows], pa.string()) for place in range(3)]
                yield pa.RecordBatch.from_arrays(columns, ["key", "partition", "file_id"])
        finally:
            use.add(client)
            client.close()

    return ask


def rows_of_groups(rows: DataFrame, table: TableSpec, groups: set[FileGroup]) -> DataFrame:
    """Of the partitions that have some of the groups, and of these the rows in them."""
    in_groups = rows.where(stored_file_id().isin(*{group.file_id for group in groups}))
    if table.partition_column is None:
        return in_groups
    values = {group.partition.partition("=")[2] for group in groups}
    return in_groups.where(F.col(table.partition_column).isin(*values))
