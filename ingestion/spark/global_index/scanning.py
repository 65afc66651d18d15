"""All that the Global Index says of a table, read region by region in Spark's tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ingestion.index.client import Region
from ingestion.index.thrift_client import BATCH
from ingestion.spark.contract.spec import GlobalIndexSpec
from ingestion.spark.global_index.clients import open_client

_ENTRIES = "key string, partition string, file_id string"
_ROWS_A_BATCH = 10 * BATCH


def entries_of_index(spark: SparkSession, spec: GlobalIndexSpec, regions: Iterable[Region]) -> DataFrame:
    """`key`, `partition` and `file_id` of each entry, as HBase has them when the frame is used."""
    ranges = [(bytearray(region.start), bytearray(region.end)) for region in regions]
    frame = spark.createDataFrame(ranges, "start binary, end binary").repartition(len(ranges))
    return frame.mapInArrow(_scanner(spec), _ENTRIES)


def _scanner(spec: GlobalIndexSpec) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def scan(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        client = open_client(spec)
        try:
            for batch in batches:
                for start, end in zip(batch["start"].to_pylist(), batch["end"].to_pylist(), strict=True):
                    entries = client.scan(start, end)
                    while rows := [*islice(entries, _ROWS_A_BATCH)]:
                        places = [(key, entry.partition, entry.file_id) for key, entry in rows]
                        arrays = [pa.array(column, pa.string()) for column in zip(*places, strict=True)]
                        yield pa.RecordBatch.from_arrays(arrays, ["key", "partition", "file_id"])
        finally:
            client.close()

    return scan
