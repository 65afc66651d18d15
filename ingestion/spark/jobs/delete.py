"""Rows deleted by key, or a share of some partitions (the planted fault of the demo). It says nothing about the source, so the checkpoint stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingestion.domain.accounting import RowCounts
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import DeleteSpec, TableSpec
from ingestion.spark.file_groups import FileGroup, direct_write, record_locations
from ingestion.spark.file_groups.batch_keys import BatchKeys
from ingestion.spark.file_groups.direct_write import PlacedRow
from ingestion.spark.file_groups.stored_rows import FILE_ID, KEY, PARTITION, read_stored_rows
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job, schema_facts
from ingestion.spark.loading import rereading, small_batches, write_path
from ingestion.spark.tables import hudi
from ingestion.spark.tables.checkpoint_metadata import commit_metadata
from ingestion.spark.tables.commit_failpoint import sleep_inside_commit
from ingestion.spark.tables.timeline import Timeline
from ingestion.spark.write_permit import hold_write_permit
from lakehub.kernel import failpoint

_HASH_BUCKETS = 1_000_000


def run(job: Job) -> JobReport:
    timeline = hudi.check_table(job.table)
    searched = timeline.latest_completion()
    if done := job.report_of_earlier_attempt(timeline):
        return done
    assert job.spec.delete is not None
    if _certain_keys(job.spec.delete, job.table, hudi.stored_schema(job.spark, job.table)):
        write_path.prepare_look_up(job)
    with hold_write_permit(job):
        # Others wait: of a long timeline only what is new is searched.
        return job.report_of_earlier_attempt(timeline, after=searched) or _find_and_delete(job, timeline)


def _find_and_delete(job: Job, timeline: Timeline) -> JobReport:
    """Within the permit: what is found is deleted where it lies then."""
    assert job.spec.delete is not None
    index: Index = INDEXES.get(job.table.index)()
    checkpoint = rereading.checkpoint_to_stamp(timeline.checkpoint())
    small = _open_small_delete(job, job.spec.delete, index)
    if small is not None:
        if not small.rows:
            return job.nothing_to_do_report()
        _delete_small(job, index, small, checkpoint)
        return write_path.report_of_commit(job)
    with _rows_to_delete(job, job.spec.delete, index) as doomed:
        with job.phase("read"):
            rows = doomed.count()
        if not rows:
            return job.nothing_to_do_report()
        _delete(job, index, doomed, rows, checkpoint)
    return write_path.report_of_commit(job)


class _SmallDelete(NamedTuple):
    """The places of the rows to delete, and the table's columns as its newest commit has them."""

    rows: list[PlacedRow]
    avro_schema: str


def _open_small_delete(job: Job, delete_spec: DeleteSpec, index: Index) -> _SmallDelete | None:
    """A few keys, found and deleted without a Spark job. None: it is Spark's."""
    table, schema = job.table, hudi.stored_schema(job.spark, job.table)
    is_nested = any("<" in type_ for type_ in schema.types.values())
    keys = None if is_nested else _certain_keys(delete_spec, table, schema)
    if not keys or len(keys) > small_batches.MAX_ROWS:
        return None
    columns = small_batches.columns_to_write(job.spark, table, schema)
    if columns is None:
        return None
    with job.phase("read"):
        files = index.base_files(job.spark, table, keys, _partitions_of_keys(delete_spec, table))
        if files is None or not small_batches.are_few(files):
            return None
        stored = read_stored_rows(table.uri, files, keys, pa.schema([]))
        corrected = index.correct(job.spark, table, {*keys}.difference(stored[KEY].to_pylist()))
        job.corrected_entries += corrected
        if corrected:
            return None  # the index is asked again, by Spark
    groups = map(FileGroup, stored[PARTITION].to_pylist(), stored[FILE_ID].to_pylist())
    wanted = {f"{table.partition_column}={name}" for name in job.spec.partitions if table.partition_column}
    rows = [
        PlacedRow.removed(key, group)
        for key, group in zip(stored[KEY].to_pylist(), groups, strict=True)
        if not wanted or group.partition in wanted
    ]
    return _SmallDelete(rows, columns)


def _certain_keys(delete_spec: DeleteSpec, table: TableSpec, schema: Schema) -> list[str] | None:
    """As Hudi writes them; None where how it writes one is not certain. Empty where rows are chosen otherwise."""
    if not record_locations.has_certain_keys(table, schema):
        return None
    if any(len(values) != len(table.record_key) for values in delete_spec.keys):
        return None
    keys = [record_locations.key_text(values, table) for values in delete_spec.keys]
    certain_keys = [key for key in keys if key is not None]
    return certain_keys if len(certain_keys) == len(keys) else None


def _partitions_of_keys(delete_spec: DeleteSpec, table: TableSpec) -> set[str]:
    """Those that the keys say; where they say none, only an index is asked that does not need them."""
    if table.partition_column is None or table.partition_column not in table.record_key:
        return {""}
    place = table.record_key.index(table.partition_column)
    return {f"{table.partition_column}={values[place]}" for values in delete_spec.keys}


def _delete_small(job: Job, index: Index, small: _SmallDelete, checkpoint: Position | None) -> None:
    marks = commit_metadata(run=_run_mark(job, len(small.rows)), checkpoint=checkpoint)
    failpoint.reach("ingestion.before_write")
    with job.phase("write"):
        direct_write.write_rows(
            job.spark, job.table, small.rows, small.avro_schema, index.write_options(job.table), marks
        )
    failpoint.reach("ingestion.after_commit")


def _run_mark(job: Job, rows: int) -> dict[str, Any]:
    facts = schema_facts(hudi.stored_schema(job.spark, job.table))
    return job.run_metadata(RowCounts(read=rows, applied=rows), facts, None, None)


@contextmanager
def _rows_to_delete(job: Job, delete_spec: DeleteSpec, index: Index) -> Iterator[DataFrame]:
    """Read once, however often the block uses them."""
    with job.phase("read"):
        share = delete_spec.share
        rows = _rows_with_keys(job, delete_spec, index) if share is None else _share_of_rows(job, share).persist()
    try:
        yield _in_partitions(job, rows)
    finally:
        rows.unpersist()


def _share_of_rows(job: Job, share: float) -> DataFrame:
    bucket = F.pmod(F.xxhash64("_hoodie_record_key"), F.lit(_HASH_BUCKETS))
    return _in_partitions(job, hudi.read_table(job.spark, job.table)).where(bucket < int(share * _HASH_BUCKETS))


def _in_partitions(job: Job, rows: DataFrame) -> DataFrame:
    column = job.table.partition_column
    return rows.where(F.col(column).isin(*job.spec.partitions)) if job.spec.partitions and column else rows


def _rows_with_keys(job: Job, delete_spec: DeleteSpec, index: Index) -> DataFrame:
    """Persisted: where the index says that they are; of the whole table where how its keys are written is not certain."""
    spark, table = job.spark, job.table
    keys = spark.createDataFrame(
        [list(key) for key in delete_spec.keys], ", ".join(f"`{name}` string" for name in table.record_key)
    )
    if _certain_keys(delete_spec, table, hudi.stored_schema(spark, table)) is None:
        return _with_keys(hudi.read_table(spark, table), keys, table).persist()
    values = {path.partition("=")[2] for path in _partitions_of_keys(delete_spec, table)}
    batch = BatchKeys(keys, len(delete_spec.keys), values, table)
    rows = _with_keys(index.stored_rows(spark, table, batch), keys, table).persist()
    named = keys.select(record_locations.record_key(table).alias("key"))
    without_row = named.join(rows.select(F.col("_hoodie_record_key").alias("key")), "key", "left_anti")
    corrected = index.correct(spark, table, without_row)
    if not corrected:
        return rows
    job.corrected_entries += corrected
    rows.unpersist()
    return _with_keys(index.stored_rows(spark, table, batch), keys, table).persist()


def _with_keys(rows: DataFrame, keys: DataFrame, table: TableSpec) -> DataFrame:
    return rows.join(F.broadcast(keys), _key_condition(rows, keys, table), "left_semi")


def _key_condition(rows: DataFrame, keys: DataFrame, table: TableSpec) -> list[Column]:
    return [rows[name].cast("string") == keys[name] for name in table.record_key]


def _delete(job: Job, index: Index, doomed: DataFrame, rows: int, checkpoint: Position | None) -> None:
    run_mark = _run_mark(job, rows)
    failpoint.reach("ingestion.before_write")
    with job.phase("write"), sleep_inside_commit(job.spark) as failing:
        hudi.write_commit(
            record_locations.with_locations(doomed, job.table),
            job.table,
            "delete",
            {**index.write_options(job.table), **record_locations.PREPPED, **failing},
            commit_metadata(run=run_mark, checkpoint=checkpoint),
        )
    failpoint.reach("ingestion.after_commit")
