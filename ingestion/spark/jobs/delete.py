"""Rows deleted by key, or a share of some partitions (the planted fault of the demo). Carries no checkpoint: it says nothing about the source."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingestion.domain.accounting import RowCounts
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import DeleteSpec, TableSpec
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job, schema_facts
from ingestion.spark.loading import write_path
from ingestion.spark.tables import hudi, record_locations
from ingestion.spark.tables.checkpoint_metadata import commit_metadata

_HASH_BUCKETS = 1_000_000


def run(job: Job) -> JobReport:
    timeline = hudi.check_table(job.table)
    if done := job.report_of_earlier_attempt(timeline):
        return done
    assert job.spec.delete is not None
    index: Index = INDEXES.get(job.table.index)()
    doomed = _rows_to_delete(job, job.spec.delete).persist()
    try:
        with job.phase("read"):
            rows = doomed.count()
        if not rows:
            return job.nothing_to_do_report()
        _delete(job, index, doomed, rows)
    finally:
        doomed.unpersist()
    return write_path.report_of_commit(job)


def _rows_to_delete(job: Job, delete_spec: DeleteSpec) -> DataFrame:
    table = job.table
    rows = hudi.read_table(job.spark, table)
    if job.spec.partitions and table.partition_column:
        rows = rows.where(F.col(table.partition_column).isin(*job.spec.partitions))
    if delete_spec.share is not None:
        return rows.where(
            F.pmod(F.xxhash64("_hoodie_record_key"), F.lit(_HASH_BUCKETS)) < int(delete_spec.share * _HASH_BUCKETS)
        )
    keys = job.spark.createDataFrame(
        [list(key) for key in delete_spec.keys], ", ".join(f"`{name}` string" for name in table.record_key)
    )
    return rows.join(F.broadcast(keys), _key_condition(rows, keys, table), "left_semi")


def _key_condition(rows: DataFrame, keys: DataFrame, table: TableSpec) -> list[Column]:
    return [rows[name].cast("string") == keys[name] for name in table.record_key]


def _delete(job: Job, index: Index, doomed: DataFrame, rows: int) -> None:
    run_mark = job.run_metadata(
        RowCounts(read=rows, applied=rows), schema_facts(hudi.stored_schema(job.spark, job.table)), None, None
    )
    with job.phase("write"):
        hudi.write_commit(
            record_locations.with_locations(doomed, job.table),
            job.table,
            "delete",
            index.write_options(job.table) | record_locations.PREPPED,
            commit_metadata(run=run_mark, checkpoint=None),
        )
