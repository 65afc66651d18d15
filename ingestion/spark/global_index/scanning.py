"""All that the Global Index says of a table, read region by region in Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ingestion.index.client import Region
from ingestion.index.thrift_client import BATCH
from ingestion.spark.contract.spec import GlobalIndexSpec
from ingestion.spark.global_index.job_use import TaskUse, at_work
from ingestion.spark.global_index.looking_up import rate_of_tasks
from ingestion.spark.global_index.told_rate import open_task_client

_ENTRIES = "key string, partition string, file_id string"
_ROWS_A_BATCH = 10 * BATCH


def entries_of_index(spark: SparkSession, spec: GlobalIndexSpec, regions: Iterable[Region]) -> DataFrame:
    """`key`, `partition` and `file_id` of each entry, as HBase has them when the frame is used, which is while the job is at work."""
    ranges = [(bytearray(region.start), bytearray(region.end)) for region in regions]
    frame = spark.createDataFrame(ranges, "start binary, end binary").repartition(len(ranges))
    use = at_work()
    rate_uri = use.hold(rate_of_tasks(spec, min(len(ranges), spark.sparkContext.defaultParallelism)))
    return frame.mapInArrow(_scanner(spec, rate_uri, use.use_of_tasks(spark)), _ENTRIES)


def _scanner(
    spec: GlobalIndexSpec, rate_uri: str, use: TaskUse
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        client = open_task_client(spec, rate_uri)
        try:
            for batch in batches:
                for start, end in zip(batch["start"].to_pylist(), batch["end"].to_pylist(), strict=True):
                    entries = client.scan(start, end)
                    while rows := [*islice(entries, _ROWS_A_BATCH)]:
                        places = [(key, entry.partition, entry.file_id) for key, entry in rows]
                        arrays = [pa.array(column, pa.string()) for column in zip(*places, strict=True)]
                        yield pa.RecordBatch.from_arrays(arrays, ["key", "partition", "file_id"])
        finally:
            use.add(client)
            client.close()

    return scan
