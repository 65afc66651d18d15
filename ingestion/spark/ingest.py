"""The path that every reading job takes: read, make fit, put errors aside, judge, write with the checkpoint, report."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame

from ingestion.domain.accounting import Counts
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Column, Evolution, Schema, evolve
from ingestion.sources import Reading, Source
from ingestion.spark import staging
from ingestion.spark.batch import Tally, applied, judge, only_keys_of, tally
from ingestion.spark.fitting import Rules
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job, Unbalanced, schema_facts
from ingestion.spark.report import JobReport
from ingestion.spark.spec import TableSpec
from ingestion.spark.tables import errors, hudi
from ingestion.spark.tables.failpoints import sleep_inside_commit
from ingestion.spark.tables.timeline import Timeline
from lakehub.kernel import failpoint

_ATTEMPTS = 3
_BROADCAST_ROWS = 200_000
"""The keys of a batch up to this size are sent to where the stored rows are, instead of moving those."""
_STALE = ("HoodieWriteConflictException", "does not exist", "ConcurrentModificationException")
"""A location that the batch was tagged with is no longer there: tag again."""


@dataclass(frozen=True)
class Plan:
    """How a batch is to be committed. `stored` False: the batch is all that the table will hold.

    `position`: where the source stands after it; `before`: where it stood.
    """

    operation: str
    evolution: Evolution
    stored: bool
    position: Position
    before: Position | None = None


def plan_schema(source: Source, table: TableSpec, stored: Schema) -> Evolution:
    """Raises UnknownColumn where the source lacks a key."""
    arriving = source.schema()
    keys = key_columns(table)
    arriving.require(keys, f"The source of `{table.name}`")
    named = Schema(
        tuple(Column(each.name, "string") if each.name == table.partition_column else each for each in arriving)
    )
    return evolve(stored, named, fixed=keys)


def key_columns(table: TableSpec) -> tuple[str, ...]:
    optional = (table.reference_key, table.partition_column)
    return tuple(dict.fromkeys((*table.record_key, *(name for name in optional if name))))


def staged(job: Job, reading: Reading, evolution: Evolution, uri: str) -> staging.Staged:
    """Everything that `reading` hands over, made to fit."""
    target, table = evolution.target, job.table
    arriving = Schema(tuple(each for each in target if each.name not in evolution.missing))
    rules = Rules(arriving, key_columns(table), table.partition_column)
    with job.phase("read"):
        return staging.stage(
            reading, rules, uri, cursor_column=job.origin.cursor_column, origin=job.origin.object, alive=job.alive
        )


def folder(job: Job) -> AbstractContextManager[str]:
    return staging.folder(job.staging_uri())


def commit(job: Job, batch: staging.Staged, plan: Plan) -> JobReport:
    """Errors first: a job that dies between the two commits finds them again under the same keys."""
    if batch.errors:
        with job.phase("errors"):
            errors.write(
                job.spark, job.table, batch.errors_uri, run_id=job.spec.run_id, read_at=job.began_at + job.clock_ahead
            )
    failpoint.reach("ingestion.before_write")
    for attempt in range(_ATTEMPTS):
        job.alive()
        try:
            idle = _commit_once(job, batch, plan)
            break
        except Py4JJavaError as problem:
            stale = any(word in str(problem.java_exception) for word in _STALE)
            # An error does not mean that nothing was committed: the timeline knows.
            if Timeline(job.table.uri).commit_of_run(job.spec.run_id):
                idle = None
                break
            if not stale or attempt == _ATTEMPTS - 1:
                raise
    if idle is not None:
        return job.nothing_to_do(counts=idle, checkpoint=dict(plan.position), schema=facts_of(plan.evolution))
    failpoint.reach("ingestion.after_commit")
    return told(job)


def told(job: Job) -> JobReport:
    """The report of the commit that was just made, from the timeline."""
    with job.phase("report"):
        made = Timeline(job.table.uri).commit_of_run(job.spec.run_id)
        assert made is not None
        return job.committed(made)


def _commit_once(job: Job, batch: staging.Staged, plan: Plan) -> Counts | None:
    """The counts where there was nothing to commit: all rows were known, and the source stands where it stood."""
    index: Index = INDEXES.get(job.table.index)()
    if not batch.rows:
        counted = Tally.of_errors(batch.read, batch.errors)
        frame = hudi.no_rows(job.spark, plan.evolution.target)
        _write(job, frame, batch, counted, replace(plan, operation="upsert"), index.options(job.table))
        return None
    judged = _judged(job, batch, plan, index).persist()
    try:
        with job.phase("judge"):
            counted = tally(judged, job.table, read=batch.read, errors=batch.errors)
        _check(counted, job.table)
        if not counted.counts.applied and plan.position == plan.before:
            return counted.counts
        frame, options = _placed(judged, job.table, plan, index)
        _write(job, frame, batch, counted, plan, index.options(job.table) | options)
        return None
    finally:
        judged.unpersist()


def _judged(job: Job, batch: staging.Staged, plan: Plan, index: Index) -> DataFrame:
    types = batch.schema.types | {staging.SEQUENCE: "long"}
    # Told rather than inferred: that would be a Spark job more.
    rows = job.spark.read.schema(", ".join(f"`{name}` {type_}" for name, type_ in types.items())).parquet(
        batch.rows_uri
    )
    held = index.stored(job.spark, job.table, batch.partitions) if plan.stored else None
    if held is not None and batch.rows <= _BROADCAST_ROWS:
        held = only_keys_of(rows, held, job.table, plan.evolution.target)
    return judge(rows, job.table, plan.evolution.target, held)


def _placed(judged: DataFrame, table: TableSpec, plan: Plan, index: Index) -> tuple[DataFrame, dict[str, str]]:
    rows = applied(judged)
    return index.place(rows, table) if plan.stored else (rows.drop(*hudi.META_COLUMNS), {})


def _write(
    job: Job, frame: DataFrame, batch: staging.Staged, counted: Tally, plan: Plan, options: Mapping[str, str]
) -> None:
    run = job.run_mark(counted.counts, facts_of(plan.evolution), batch.oldest, batch.newest)
    marks = hudi.marks(run=run, checkpoint=plan.position)
    with job.phase("write"), sleep_inside_commit(job.spark) as failing:
        hudi.write(frame, job.table, plan.operation, {**options, **failing}, marks)


def _check(counted: Tally, table: TableSpec) -> None:
    if not counted.counts.balanced:
        raise Unbalanced(
            f"{counted.counts.unaccounted} of {counted.counts.read} rows read for `{table.name}` are not accounted for ({counted.counts}); nothing was written. "
            "A negative number means that the table holds a record key twice: look for another writer, then bootstrap it again."
        )


def facts_of(evolution: Evolution) -> dict[str, Any]:
    return schema_facts(
        evolution.target,
        added=list(evolution.added),
        widened=list(evolution.widened),
        conflicts=[list(each) for each in evolution.conflicts],
    )
