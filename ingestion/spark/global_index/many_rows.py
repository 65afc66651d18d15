"""Many rows asked for or changed at once: by Spark's tasks through a Thrift server, each within its part of what the job may send, or else by the driver, which alone
has HBase's own client."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from ingestion.index.client import IndexClient
from ingestion.index.patient_client import BATCH
from ingestion.spark.contract.spec import GlobalIndexSpec
from ingestion.spark.global_index.clients import open_client
from ingestion.spark.global_index.hbase_client.staging import let_go, staged_name
from ingestion.spark.global_index.job_use import TaskUse, at_work
from ingestion.spark.global_index.told_rate import rate_told_at, told_rate
from ingestion.spark.tables.timeline import open_storage

Asking = Callable[[IndexClient, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
ROWS_AT_ONCE = 10 * BATCH


@contextmanager
def answers_for(
    spark: SparkSession, spec: GlobalIndexSpec, frame: DataFrame, ask: Asking, columns: str, *, tasks: int
) -> Iterator[DataFrame]:
    """What `ask` answers for the rows of `frame`, by its `columns`, for as long as the block runs. `tasks`: of Spark that run at once, where they ask, which is when
    the answers are used; the driver has asked when the block begins."""
    if not spec.thrift:
        with _answers_of_driver(spark, spec, frame, ask, columns) as answers:
            yield answers
        return
    with _rate_of_tasks(spec, tasks) as rate_uri:
        yield frame.mapInArrow(_in_task(spec, rate_uri, at_work().use_of_tasks(spark), ask), columns)


@contextmanager
def _rate_of_tasks(spec: GlobalIndexSpec, tasks: int) -> Iterator[str]:
    """Where each of them reads how fast it may ask; empty where any may ask as fast as it can."""
    use = at_work()
    if use.requests_per_s(spec) is None:
        yield ""
        return
    with told_rate(spec.staging_uri, spec.table, lambda: (use.requests_per_s(spec) or 0.0) / tasks) as uri:
        yield uri


def _in_task(
    spec: GlobalIndexSpec, rate_uri: str, use: TaskUse, ask: Asking
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def map_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        client = open_client(spec, rate=rate_told_at(rate_uri) if rate_uri else None)
        try:
            yield from ask(client, batches)
        finally:
            use.add(client)
            client.close()

    return map_batches


@contextmanager
def _answers_of_driver(
    spark: SparkSession, spec: GlobalIndexSpec, frame: DataFrame, ask: Asking, columns: str
) -> Iterator[DataFrame]:
    """Kept in a file where HFiles are staged: however many they are, few are in the driver's memory at once."""
    uri = f"{spec.staging_uri.rstrip('/')}/{staged_name(spec.table, '.answers')}"
    filesystem, path = open_storage(uri)
    schema = spark.createDataFrame([], columns).schema
    client = open_client(spec, rate=lambda: at_work().rate_before_asking(spec))
    at_work().watch(client)
    filesystem.create_dir(path)
    try:
        with (
            closing(client),
            filesystem.open_output_stream(f"{path}/answers.parquet") as file,
            pq.ParquetWriter(file, to_arrow_schema(schema)) as writer,
        ):
            for answers in ask(client, _batches_of(frame)):
                writer.write_batch(answers)
        yield spark.read.schema(schema).parquet(uri)
    finally:
        let_go(uri)


def pieces_of(spec: GlobalIndexSpec, rows: int, tasks: int) -> int:
    """Partitions for a frame of so many rows that is asked for: each is in the driver's memory at once where the driver asks."""
    return tasks if spec.thrift else max(1, -(-rows // ROWS_AT_ONCE))


def _batches_of(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    rows, schema = frame.toLocalIterator(), to_arrow_schema(frame.schema)
    while some := [row.asDict() for row in islice(rows, ROWS_AT_ONCE)]:
        yield pa.RecordBatch.from_pylist(some, schema=schema)
