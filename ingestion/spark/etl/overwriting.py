"""Partitions of the target recomputed as a whole: one commit, by which all that they hold is replaced."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from ingestion.domain.accounting import RowCounts
from ingestion.domain.schema import Schema
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.etl.audits import audit, is_audited
from ingestion.spark.etl.committing import check_nobody_else_wrote
from ingestion.spark.etl.few_rows import columns_of_arrow
from ingestion.spark.file_groups.many_rows.new_files import Placement
from ingestion.spark.file_groups.many_rows.overwriting import overwrite_partitions
from ingestion.spark.file_groups.record_locations import partition_path
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job
from ingestion.spark.loading import staging
from ingestion.spark.loading.committing import CommitPlan, check_judged_now, marks_of, staged_rows
from ingestion.spark.loading.rereading import ReadAgain
from ingestion.spark.loading.row_fates import FateCounts
from ingestion.spark.tables import hudi

_PLAIN_NAME = re.compile(r"(?!__|\s|\.)[^/\\\x00-\x1f%:=]+(?<!\s)")
_EMPTY = "__empty__"
"""What Hudi writes for an empty text within a key of several columns."""
_MAX_OPEN = 20
MAX_PIECES = 2
"""Files of a partition that come of rows that are not brought together first."""


def can_overwrite(job: Job, target: Schema) -> bool:
    """Else rows are replaced by key: of a table with an index of records, which would have to forget the keys that were there, or of which only Hudi can write a commit."""
    index: Index = INDEXES.get(job.table.index)()
    return (
        job.pipeline_spec.overwrites
        and not hudi.has_metadata_table(job.table.uri)
        and columns_of_arrow(job, target, index) is not None
    )


def has_one_path(name: str) -> bool:
    """Whoever writes the partition: without what is escaped, or stands for something else, in a path."""
    return _PLAIN_NAME.fullmatch(name) is not None


def overwriting(partitions: Sequence[str]) -> Callable[[Job, staging.StagedBatch, CommitPlan], RowCounts | None]:
    """A `CommitAttempt`: the staged rows are all that the target is to hold of the `partitions`, of which it may hold none."""

    def commit(job: Job, batch: staging.StagedBatch, plan: CommitPlan) -> RowCounts | None:
        check_nobody_else_wrote(job, plan)
        index: Index = INDEXES.get(job.table.index)()
        target = plan.evolution.target
        columns = columns_of_arrow(job, target, index)
        if columns is None:
            raise ReadAgain("the columns of the target have changed since the inputs were read")
        rows = staged_rows(job, batch)
        if is_audited(job):
            audit(job, batch, rows.select(*target.names), partitions, plan.position)
        marks = marks_of(job, batch, FateCounts(RowCounts(read=batch.read, applied=batch.rows)), plan)
        check_judged_now(job, plan)
        paths = [f"{job.table.partition_column}={name}" for name in partitions]
        own = _own_columns(job.table)
        with job.phase("write"):
            overwrite_partitions(
                job.table,
                rows,
                target.names,
                own,
                paths,
                columns,
                index.write_options(job.table),
                marks,
                largest=max((batch.rows_by_partition or {}).values(), default=0),
                placement=placement_of(batch),
            )
        return None

    return commit


def _own_columns(table: TableSpec) -> tuple[Column, Column]:
    """The record key, in which Hudi has a word for an empty text, and the path of the partition."""
    texts = [F.col(name).cast("string") for name in table.record_key]
    parts = [
        F.concat(F.lit(f"{name}:"), F.when(text == "", F.lit(_EMPTY)).otherwise(text))
        for name, text in zip(table.record_key, texts, strict=True)
    ]
    return (texts[0] if len(texts) == 1 else F.concat_ws(",", *parts)), partition_path(table)


def placement_of(batch: staging.StagedBatch) -> Placement:
    """Where the SELECT leaves rows in the partitions of its source, those of a partition lie in a staged file or two, mostly one after another: they are written from there, without a shuffle."""
    partitions, layout = len(batch.rows_by_partition or ()), batch.layout
    if layout is None or layout.pieces > MAX_PIECES * partitions:
        return Placement.ANYWHERE
    if layout.are_runs:
        return Placement.IN_RUNS
    return Placement.IN_FEW if partitions <= _MAX_OPEN else Placement.ANYWHERE
