"""The path that every reading job takes: read, make fit, put errors aside, judge, write with the checkpoint, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import ZoneInfo

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame

from ingestion.domain.accounting import RowCounts
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema, SchemaColumn, SchemaEvolution, evolve_schema
from ingestion.sources import Source, SourceReading
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job, UnbalancedCounts, schema_facts
from ingestion.spark.loading import staging
from ingestion.spark.loading.fitting import FitRules
from ingestion.spark.loading.row_fates import (
    FateCounts,
    applied_rows,
    assign_fates,
    count_fates,
    keys_of_batch,
    stored_rows_of_batch,
)
from ingestion.spark.tables import error_table, hudi, record_locations
from ingestion.spark.tables.batch_keys import BatchKeys
from ingestion.spark.tables.checkpoint_metadata import commit_metadata
from ingestion.spark.tables.commit_failpoint import sleep_inside_commit
from ingestion.spark.tables.timeline import Timeline
from lakehub.kernel import failpoint
from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.form import PartitionForm

_MAX_ATTEMPTS = 3
_MAX_BROADCAST_ROWS = 200_000
"""The keys of a batch up to this size are sent to where the stored rows are, instead of moving those."""
_STALE_LOCATION_ERRORS = ("HoodieWriteConflictException", "does not exist", "ConcurrentModificationException")
"""A location that the batch was tagged with is no longer there: tag again."""


@dataclass(frozen=True)
class CommitPlan:
    """How a batch is to be committed. `has_stored_rows` False: the batch is all that the table will hold.

    `position`: where the source stands after it; `previous_position`: where it stood.
    """

    operation: str
    evolution: SchemaEvolution
    has_stored_rows: bool
    position: Position
    previous_position: Position | None = None


def plan_schema(source: Source, table: TableSpec, stored: Schema) -> SchemaEvolution:
    """Raises UnknownColumn where the source lacks a key, UnfitColumnName where it has a column that the lake cannot hold."""
    arriving, keys, owner = source.schema(), key_columns(table), f"The source of `{table.name}`"
    arriving.require_lake_names(owner)
    if table.partition_from is not None:
        arriving.require(table.partition_from.columns, owner)
        if table.partition_column is not None and table.partition_column not in arriving.names:
            arriving = Schema((*arriving, SchemaColumn(table.partition_column, "string")))
    arriving.require(keys, owner)
    named = Schema(
        tuple(
            SchemaColumn(column.name, "string") if column.name == table.partition_column else column
            for column in arriving
        )
    )
    return evolve_schema(stored, named, fixed=keys)


def key_columns(table: TableSpec) -> tuple[str, ...]:
    optional = (table.reference_key, table.partition_column)
    return tuple(dict.fromkeys((*table.record_key, *(name for name in optional if name))))


def partition_form_of(table: TableSpec) -> PartitionForm | None:
    """How the source says the partitions of the table; None: by their names in the partition column."""
    given = table.partition_from
    if given is None:
        return None
    return PartitionForm(given.columns, Grain(given.grain), ZoneInfo(given.zone), given.form)


def stage_reading(
    job: Job, reading: SourceReading, evolution: SchemaEvolution, uri: str, only: Sequence[str] | None = None
) -> staging.StagedBatch:
    """Everything that `reading` hands over, made to fit; with `only` of the partitions with these names."""
    target, table = evolution.target, job.table
    arriving = Schema(tuple(column for column in target if column.name not in evolution.missing))
    form = partition_form_of(table)
    wanted = None if only is None or form is None else frozenset(only)
    rules = FitRules(arriving, key_columns(table), table.partition_column, form, wanted)
    with job.phase("read"):
        job.rows_total = reading.total()
        return staging.stage_rows(
            reading,
            rules,
            uri,
            cursor_column=job.source_spec.cursor_column,
            origin=job.source_spec.object,
            alive=job.check_deadline,
            tell_rows=job.tell_rows,
        )


def staging_folder(job: Job) -> AbstractContextManager[str]:
    return staging.temporary_folder(job.staging_uri())


def commit_batch(job: Job, batch: staging.StagedBatch, plan: CommitPlan) -> JobReport:
    """Errors first: a job that dies between the two commits finds them again under the same keys."""
    if batch.errors:
        with job.phase("errors"):
            error_table.write_errors(
                job.spark, job.table, batch.errors_uri, run_id=job.spec.run_id, read_at=job.started_at + job.clock_ahead
            )
    failpoint.reach("ingestion.before_write")
    for attempt in range(_MAX_ATTEMPTS):
        job.check_deadline()
        try:
            idle = _commit_once(job, batch, plan)
            break
        except Py4JJavaError as problem:
            stale = any(word in str(problem.java_exception) for word in _STALE_LOCATION_ERRORS)
            # An error does not mean that nothing was committed: the timeline knows.
            if Timeline(job.table.uri).commit_of_run(job.spec.run_id):
                idle = None
                break
            if not stale or attempt == _MAX_ATTEMPTS - 1:
                raise
    if idle is not None:
        return job.nothing_to_do_report(
            counts=idle, checkpoint=dict(plan.position), schema=schema_facts_of(plan.evolution)
        )
    failpoint.reach("ingestion.after_commit")
    return report_of_commit(job)


def report_of_commit(job: Job) -> JobReport:
    """The report of the commit that was just made, from the timeline."""
    with job.phase("report"):
        commit = Timeline(job.table.uri).commit_of_run(job.spec.run_id)
        assert commit is not None
        return job.report_of(commit)


def _commit_once(job: Job, batch: staging.StagedBatch, plan: CommitPlan) -> RowCounts | None:
    """The counts where there was nothing to commit: all rows were known, and the source stands where it stood."""
    index: Index = INDEXES.get(job.table.index)()
    if not batch.rows:
        counted = FateCounts.of_errors(batch.read, batch.errors)
        frame = hudi.empty_frame(job.spark, plan.evolution.target)
        _write(job, frame, batch, counted, replace(plan, operation="upsert"), index.write_options(job.table))
        return None
    judged = _rows_with_fates(job, batch, plan, index).persist()
    try:
        with job.phase("judge"):
            counted = count_fates(judged, job.table, read=batch.read, errors=batch.errors)
        _check_balance(counted, job.table)
        if not counted.counts.applied and plan.position == plan.previous_position:
            return counted.counts
        frame, options = _rows_to_write(judged, job.table, plan)
        _write(job, frame, batch, counted, plan, index.write_options(job.table) | options)
        return None
    finally:
        judged.unpersist()


def _rows_with_fates(job: Job, batch: staging.StagedBatch, plan: CommitPlan, index: Index) -> DataFrame:
    types = batch.schema.types | {staging.SEQUENCE_COLUMN: "long"}
    # Told rather than inferred: that would be a Spark job more.
    rows = job.spark.read.schema(", ".join(f"`{name}` {type_}" for name, type_ in types.items())).parquet(
        batch.rows_uri
    )
    target = plan.evolution.target
    stored_rows = _stored_rows(job, rows, batch, target, index) if plan.has_stored_rows else None
    return assign_fates(rows, job.table, target, stored_rows)


def _stored_rows(job: Job, rows: DataFrame, batch: staging.StagedBatch, target: Schema, index: Index) -> DataFrame:
    """Those that have the keys of the batch, and others where it is large."""
    keys = BatchKeys(keys_of_batch(rows, job.table, target), batch.rows, batch.partitions, job.table)
    stored_rows = index.stored_rows(job.spark, job.table, keys)
    if batch.rows > _MAX_BROADCAST_ROWS:
        return stored_rows
    return stored_rows_of_batch(keys.frame, stored_rows, job.table)


def _rows_to_write(judged: DataFrame, table: TableSpec, plan: CommitPlan) -> tuple[DataFrame, dict[str, str]]:
    """With their locations, unless the table is new or a key may change its partition, which is Hudi's work in one commit."""
    rows = applied_rows(judged)
    # Hudi looks up by the text of a key, and ours is not its own for each type: one table has the one or the other.
    if not plan.has_stored_rows or not record_locations.key_determines_partition(table):
        return record_locations.without_locations(rows), {}
    return record_locations.with_locations(rows, table), record_locations.PREPPED


def _write(
    job: Job,
    frame: DataFrame,
    batch: staging.StagedBatch,
    counted: FateCounts,
    plan: CommitPlan,
    options: Mapping[str, str],
) -> None:
    run = job.run_metadata(
        counted.counts, schema_facts_of(plan.evolution), batch.oldest, batch.newest, batch.unusable_cursors
    )
    if job.table.partition_from is not None:
        run |= batch.misplaced_facts
    marks = commit_metadata(run=run, checkpoint=plan.position)
    with job.phase("write"), sleep_inside_commit(job.spark) as failing:
        hudi.write_commit(frame, job.table, plan.operation, {**options, **failing}, marks)


def _check_balance(counted: FateCounts, table: TableSpec) -> None:
    if not counted.counts.is_balanced:
        raise UnbalancedCounts(
            f"{counted.counts.unaccounted} of {counted.counts.read} rows read for `{table.name}` are not accounted for ({counted.counts}); nothing was written. "
            "A negative number means that the table holds a record key twice: look for another writer, then bootstrap it again."
        )


def schema_facts_of(evolution: SchemaEvolution) -> dict[str, Any]:
    return schema_facts(
        evolution.target,
        added=list(evolution.added),
        widened=list(evolution.widened),
        missing=list(evolution.missing),
        conflicts=[list(conflict) for conflict in evolution.conflicts],
    )
