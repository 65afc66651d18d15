"""Single entries of the Global Index are put right: where the table has a key is written, and an entry of a key that the table does not have is removed.

Only within the table's permit: nobody writes the table meanwhile, and what the rows say is what the index is to say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingestion.index.client import IndexClient
from ingestion.index.entries import Entry
from ingestion.spark.contract.spec import GlobalIndexSpec, TableSpec
from ingestion.spark.file_groups.record_locations import stored_file_id
from ingestion.spark.global_index.following import milliseconds_of
from ingestion.spark.global_index.many_rows import answers_for, pieces_of
from ingestion.spark.global_index.taken_back import completion_of, rollbacks_on
from ingestion.spark.tables.hudi import read_table
from ingestion.spark.tables.timeline import Timeline


def repair_time_ms(timeline: Timeline) -> int:
    """That of the newest commit or rollback, and no clock's: the clock of another machine may be behind, and an entry that is removed at a time hides whatever is
    put at an earlier one. An entry that another program has put at a later time is not put right."""
    return milliseconds_of(max([timeline.latest_completion(), *map(completion_of, rollbacks_on(timeline))]))


def places_in_table(spark: SparkSession, table: TableSpec, keys: Collection[str]) -> dict[str, Entry]:
    """Where the table has those that it has, by the keys of all its rows: one Spark job."""
    wanted = spark.createDataFrame([(key,) for key in keys], "key string")
    stored = read_table(spark, table, by_listing=True).select(
        F.col("_hoodie_record_key").alias("key"), "_hoodie_partition_path", stored_file_id(), "_hoodie_commit_time"
    )
    rows = stored.join(F.broadcast(wanted), "key").collect()
    return {key: Entry(*place) for key, *place in rows}


def put_right(client: IndexClient, places: Mapping[str, Entry | None], *, at_ms: int) -> None:
    """`places`: by key where the table has it; None: it does not. Raises IndexUnavailable, IndexTableMissing."""
    # Later than whatever was removed at that time; the next commit may complete at this one, and what is put then stands.
    client.put({key: entry for key, entry in places.items() if entry is not None}, at_ms=at_ms + 1)
    client.delete([key for key, entry in places.items() if entry is None], at_ms=at_ms)


def put_right_many(spark: SparkSession, spec: GlobalIndexSpec, wrong: DataFrame, *, at_ms: int) -> None:
    """`wrong`: as `index_check.Repair` has it."""

    def repair(client: IndexClient, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Keys with their places -> how many there were."""
        keys = 0
        for batch in batches:
            rows = batch.to_pylist()
            put_right(client, {row["key"]: _place_of(row) for row in rows}, at_ms=at_ms)
            keys += len(rows)
        yield pa.RecordBatch.from_arrays([pa.array([keys], pa.int64())], ["keys"])

    tasks = spark.sparkContext.defaultParallelism
    rows = 0 if spec.thrift else wrong.count()
    spread = wrong.repartition(pieces_of(spec, rows, tasks), "key")
    with answers_for(spark, spec, spread, repair, "keys long", tasks=tasks) as repaired:
        repaired.agg({"keys": "sum"}).collect()


def _place_of(row: Mapping[str, str | None]) -> Entry | None:
    partition, file_id, instant = (row[name] for name in Entry._fields)
    if partition is None or file_id is None or instant is None:
        return None
    return Entry(partition, file_id, instant)
