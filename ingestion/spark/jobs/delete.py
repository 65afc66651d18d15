"""Rows deleted by key, or a share of some partitions (the planted fault of the demo). Carries no checkpoint: it says nothing about the source."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingestion.domain.accounting import Counts
from ingestion.spark import ingest
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job, schema_facts
from ingestion.spark.report import JobReport
from ingestion.spark.spec import DeleteSpec, TableSpec
from ingestion.spark.tables import hudi

_GRAINS = 1_000_000


def run(job: Job) -> JobReport:
    timeline = hudi.check(job.table)
    if done := job.done_before(timeline):
        return done
    assert job.spec.delete is not None
    index: Index = INDEXES.get(job.table.index)()
    doomed = _doomed(job, job.spec.delete).persist()
    try:
        with job.phase("read"):
            rows = doomed.count()
        if not rows:
            return job.nothing_to_do()
        _delete(job, index, doomed, rows)
    finally:
        doomed.unpersist()
    return ingest.told(job)


def _doomed(job: Job, wanted: DeleteSpec) -> DataFrame:
    table = job.table
    rows = hudi.read(job.spark, table)
    if job.spec.partitions and table.partition_column:
        rows = rows.where(F.col(table.partition_column).isin(*job.spec.partitions))
    if wanted.share is not None:
        return rows.where(F.pmod(F.xxhash64("_hoodie_record_key"), F.lit(_GRAINS)) < int(wanted.share * _GRAINS))
    keys = job.spark.createDataFrame(
        [list(key) for key in wanted.keys], ", ".join(f"`{name}` string" for name in table.record_key)
    )
    return rows.join(F.broadcast(keys), _same_key(rows, keys, table), "left_semi")


def _same_key(rows: DataFrame, keys: DataFrame, table: TableSpec) -> list[Column]:
    return [rows[name].cast("string") == keys[name] for name in table.record_key]


def _delete(job: Job, index: Index, doomed: DataFrame, rows: int) -> None:
    run_mark = job.run_mark(
        Counts(read=rows, applied=rows), schema_facts(hudi.stored_schema(job.spark, job.table)), None, None
    )
    frame, options = index.place(doomed, job.table)
    with job.phase("write"):
        hudi.write(
            frame, job.table, "delete", index.options(job.table) | options, hudi.marks(run=run_mark, checkpoint=None)
        )
