"""A small batch from its staged rows to its commit without a Spark job: keys looked up, stored rows read, judged and written in this process.

Spark's jobs cost more than the work of a batch of a few rows. Whatever is large, or whose keys are not certain to be written as Hudi writes them, is Spark's.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ingestion.domain.schema import Schema
from ingestion.domain.write_races import WrittenSince
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import BaseFile
from ingestion.spark.file_groups.arrow_types import arrow_type
from ingestion.spark.file_groups.java_client import has_client
from ingestion.spark.file_groups.lookups import newest_base_files, partition_paths
from ingestion.spark.file_groups.record_locations import has_certain_keys, key_text
from ingestion.spark.file_groups.stored_rows import KEY, read_stored_rows
from ingestion.spark.indexes import Index
from ingestion.spark.job import Job
from ingestion.spark.loading.judging import Batch, Judged, judge, partition_path, plain_rows, stored_rows_of
from ingestion.spark.loading.rereading import check_entries
from ingestion.spark.loading.staging import SEQUENCE_COLUMN, StagedBatch
from ingestion.spark.tables import avro_schema
from ingestion.spark.tables.hudi import META_COLUMNS
from ingestion.spark.tables.timeline import Timeline, open_storage

logger = logging.getLogger(__name__)
_MIB = 1024 * 1024
MAX_ROWS, MAX_ROW_BYTES = 50_000, 64 * _MIB
"""Of the batch, which is in the driver's memory."""
MAX_FILES, MAX_FILE_BYTES, MAX_BYTES = 256, 64 * _MIB, 512 * _MIB
"""Base files that are read and written anew in the driver, a few at a time; more are the work of Spark's executors."""


@dataclass(frozen=True)
class SmallBatch:
    """Rows of a batch with the base files that may hold their keys. `avro_schema`: the table's columns as its newest commit has them.

    `sought`: the keys that the table may hold.
    """

    batch: Batch
    files: tuple[BaseFile, ...]
    target: Schema
    avro_schema: str
    sought: tuple[str, ...]

    def judge(self, job: Job, index: Index, *, read: int, errors: int, since: WrittenSince | None) -> Judged | None:
        """None: a file has a column in a type that only Spark makes the table's of. Raises JudgeAgain."""
        table = job.table
        columns = pa.schema([(name, arrow_type(type_)) for name, type_ in self.target.types.items()])
        try:
            stored = read_stored_rows(table.uri, self.files, self.sought, columns)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
            logger.info("Stored rows of %s are read by Spark: %s", table.name, problem)
            return None
        check_entries(job, index, {*self.sought}.difference(stored[KEY].to_pylist()))
        return judge(self.batch, stored_rows_of(stored), table, read=read, errors=errors, since=since)


def open_small_batch(
    job: Job, staged: StagedBatch, target: Schema, index: Index, sought: Sequence[range]
) -> SmallBatch | None:
    """`sought`: the rows to look up, by their sequence. None: it is Spark's."""
    table = job.table
    if (
        staged.rows > MAX_ROWS
        or staged.row_bytes > MAX_ROW_BYTES
        or staged.is_replayed
        or not has_certain_keys(table, target)
    ):
        return None
    if any("<" in type_ for type_ in target.types.values()):
        return None  # nested
    columns = columns_to_write(job.spark, table, target)
    if columns is None:
        return None
    rows = _read_rows(staged, target)
    keys = _key_texts(rows, table)
    if keys is None:
        return None
    batch = Batch(plain_rows(rows), keys, tuple(name for name in rows.column_names if name != SEQUENCE_COLUMN))
    sought_keys = _keys_to_look_up(rows, keys, sought)
    partitions = {partition_path(row, table) for key, row in zip(keys, batch.rows, strict=True) if key in sought_keys}
    files = index.base_files(job.spark, table, tuple(sought_keys), partitions)
    if files is None or not are_few(files):
        return None
    return SmallBatch(batch, tuple(files), target, columns, tuple(sought_keys))


def _keys_to_look_up(rows: pa.Table, keys: Sequence[str], sought: Sequence[range]) -> dict[str, None]:
    """Each once, in order."""
    sequence = rows[SEQUENCE_COLUMN].to_pylist()
    return {
        key: None for key, number in zip(keys, sequence, strict=True) if any(number in numbers for numbers in sought)
    }


def files_of_keys(
    spark: SparkSession, table: TableSpec, index: Index, keys: Sequence[str], partitions: Collection[str]
) -> Sequence[BaseFile]:
    """The base files that may hold the keys; all of the table where the index cannot say."""
    files = index.base_files(spark, table, keys, partitions)
    return newest_base_files(spark, table.uri, partition_paths(spark, table.uri)) if files is None else files


def are_few(files: Sequence[BaseFile]) -> bool:
    """To read and write anew without Spark."""
    sizes = [file.size for file in files]
    return len(sizes) <= MAX_FILES and max(sizes, default=0) <= MAX_FILE_BYTES and sum(sizes) <= MAX_BYTES


def columns_to_write(spark: SparkSession, table: TableSpec, target: Schema) -> str | None:
    """With which a commit is written without a Spark job: the newest commit's, where they are the target's, each as it would be
    written now. None: it is Spark's."""
    named = next((commit.avro_schema for commit in Timeline(table.uri).newest_first() if commit.avro_schema), "")
    if not named or "timestamp-millis" in named:
        return None
    if avro_schema.schema_of(named, without=META_COLUMNS) != target or not has_client(spark):
        return None
    return named


def _read_rows(staged: StagedBatch, target: Schema) -> pa.Table:
    """In the order in which they were read, in the table's types."""
    filesystem, path = open_storage(staged.rows_uri)
    rows = pq.read_table(path, filesystem=filesystem, partitioning=None).sort_by(SEQUENCE_COLUMN)
    types = {name: arrow_type(type_) for name, type_ in target.types.items()}
    return rows.cast(pa.schema([(name, types.get(name, pa.int64())) for name in rows.column_names]))


def _key_texts(rows: pa.Table, table: TableSpec) -> list[str] | None:
    """Of each row, as Hudi writes it; None where that is not certain of one."""
    values = zip(*(rows[name].cast(pa.string()).to_pylist() for name in table.record_key), strict=True)
    keys = [key_text(texts, table) for texts in values]
    certain_keys = [key for key in keys if key is not None]
    return certain_keys if len(certain_keys) == len(keys) else None
