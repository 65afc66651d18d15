"""All that the Global Index says of a table, read region by region."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ingestion.index.client import IndexClient, Region
from ingestion.spark.contract.spec import GlobalIndexSpec
from ingestion.spark.global_index.job_use import at_work
from ingestion.spark.global_index.many_rows import ROWS_AT_ONCE, answers_for

_ENTRIES = "key string, partition string, file_id string"


def entries_of_index(spark: SparkSession, spec: GlobalIndexSpec, regions: Iterable[Region]) -> DataFrame:
    """`key`, `partition` and `file_id` of each entry, as HBase has them when the frame is used, which is while the job is at work."""
    ranges = [(bytearray(region.start), bytearray(region.end)) for region in regions]
    # No more tasks than share the rate, however many executors come while they run.
    tasks = min(len(ranges), spark.sparkContext.defaultParallelism)
    frame = spark.createDataFrame(ranges, "start binary, end binary").repartition(tasks)
    return at_work().hold(answers_for(spark, spec, frame, _entries_of, _ENTRIES, tasks=tasks))


def _entries_of(client: IndexClient, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for start, end in zip(batch["start"].to_pylist(), batch["end"].to_pylist(), strict=True):
            entries = client.scan(start, end)
            while rows := [*islice(entries, ROWS_AT_ONCE)]:
                places = [(key, entry.partition, entry.file_id) for key, entry in rows]
                arrays = [pa.array(column, pa.string()) for column in zip(*places, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, ["key", "partition", "file_id"])
