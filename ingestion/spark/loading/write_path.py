"""The path that every reading job takes: read, make fit, put errors aside, judge, write with the checkpoint, report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from zoneinfo import ZoneInfo

from py4j.protocol import Py4JJavaError

from ingestion.capture.null_instead import nulls_misfits
from ingestion.domain.accounting import RowCounts
from ingestion.domain.checkpoint import (
    Checkpoint,
    Position,
    has_stored_note,
    run_of_commit,
    with_rows_followed,
    with_rows_loaded_upto,
)
from ingestion.domain.column_types import is_certain_key, is_nested
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN
from ingestion.domain.schema import Schema, SchemaColumn, SchemaEvolution, evolve_schema, require_one_spelling
from ingestion.domain.write_races import written_since
from ingestion.sources import SourceReading
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import record_locations
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job
from ingestion.spark.loading import rereading, staging
from ingestion.spark.loading.committing import CommitPlan as CommitPlan
from ingestion.spark.loading.committing import commit_once
from ingestion.spark.loading.committing import schema_facts_of as schema_facts_of
from ingestion.spark.loading.fitting import FitRules
from ingestion.spark.rejected import error_table
from ingestion.spark.rejected.error_table import ErrorFacts
from ingestion.spark.tables.timeline import Timeline
from ingestion.spark.write_permit import hold_write_permit
from lakehub.kernel import failpoint
from lakehub.kernel.partitions import Grain
from lakehub.kernel.partitions.form import PartitionForm

_MAX_ATTEMPTS = 3
_STAGING_MARGIN = timedelta(hours=1)
"""For clocks of other machines, and a write that goes on past the deadline."""
_STALE_LOCATION_ERRORS = ("HoodieWriteConflictException", "does not exist", "ConcurrentModificationException")
"""A location that the batch was tagged with is no longer there: tag again."""
CommitAttempt = Callable[[Job, staging.StagedBatch, CommitPlan], RowCounts | None]
"""One attempt, within the permit: the counts where there was nothing to commit."""


class UnfitKey(ValueError):
    """A key column holds structures, lists or maps, which are in no order, or bytes: they have no text that names a row."""


def begin_reading(job: Job, reading: SourceReading) -> tuple[Schema | None, SourceReading]:
    """Of which schema the rows are that come; None: none comes."""
    with job.phase("read"):
        job.rows_total = reading.total()
        return staging.begin_reading(replace(reading, batches=job.reading_pace.batches(reading.batches)))


def plan_schema(arriving: Schema, table: TableSpec, stored: Schema) -> SchemaEvolution:
    """What rows with the schema `arriving` mean for the table.

    Raises UnknownColumn where the source lacks a key, UnfitColumnName where it has a column that the lake cannot hold, alone or beside the stored ones,
    UnfitKey where a key is nested, or the record key is bytes."""
    keys, owner = key_columns(table), f"The source of `{table.name}`"
    own = {METADATA_COLUMN} if table.has_metadata else set()
    Schema(tuple(column for column in arriving if column.name not in own)).require_lake_names(owner)
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
    require_one_spelling(stored, named, owner)
    evolution = evolve_schema(stored, named, fixed=keys)
    _refuse_nested_keys(evolution.target, keys, owner)
    _refuse_binary_keys(evolution.target, table.record_key, owner)
    if table.has_metadata:
        _refuse_uncertain_keys(evolution.target, table.record_key, owner)
    return evolution


def _refuse_nested_keys(target: Schema, keys: Iterable[str], owner: str) -> None:
    for name in keys:
        if is_nested(target.types[name]):
            raise UnfitKey(
                f"{owner} has the type `{target.types[name]}` in the column `{name}`, which is a key (record key, reference key or partition). "
                "A key holds plain values: name another column, or load a view that has the value as a column of its own."
            )


def _refuse_binary_keys(target: Schema, record_key: Iterable[str], owner: str) -> None:
    """Hudi writes the place of the bytes in memory as the key: the same row has another one each time."""
    for name in record_key:
        if target.types[name] == "binary":
            raise UnfitKey(
                f"{owner} has bytes (`binary`) in the column `{name}`, which is a part of the record key. "
                "Load a view that has them as text, such as `hex(id)`, and name that column."
            )


def _refuse_uncertain_keys(target: Schema, record_key: Iterable[str], owner: str) -> None:
    """Changes name rows by their key as a text, which is written alike by everyone for these types only."""
    for name in record_key:
        if not is_certain_key(target.types[name]):
            raise UnfitKey(
                f"{owner} has the type `{target.types[name]}` in the column `{name}`, which is a part of the record key: its changes could not be told from new rows. "
                "A captured table is keyed by texts, whole numbers, dates and decimals without a fraction; load it by its cursor column, from a connection with the plug-in `sql`."
            )


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
    rules = FitRules(
        arriving,
        key_columns(table),
        table.partition_column,
        form,
        wanted,
        table.record_key,
        is_captured=table.has_metadata,
        nulls_misfits=nulls_misfits(job.source_spec.options),
    )
    with job.phase("read"):
        return staging.stage_rows(
            reading,
            rules,
            uri,
            cursor_column=job.source_spec.cursor_column,
            origin=job.source_spec.object,
            alive=job.check_deadline,
            tell_rows=job.tell_rows,
        )


def position_of_load(job: Job, position: Position) -> Position:
    """Of a job that read the table of the source as it is, whatever its changes would have handed over."""
    return with_rows_loaded_upto(position, job.spec.upto) if job.table.append_only else position


def position_of_changes(job: Job, position: Position, before: Position, *, has_more: bool) -> Position:
    """Of a job that read the changes since `before`."""
    if not job.table.append_only:
        return position
    return with_rows_followed(position, before, upto=job.spec.upto, is_whole=not has_more)


def staging_folder(job: Job) -> AbstractContextManager[str]:
    return staging.temporary_folder(job.staging_uri(), until=job.ends_at + _STAGING_MARGIN, now=job.started_at)


def folder_in_lake(job: Job) -> AbstractContextManager[str]:
    """The same beside the table, wherever rows are staged: a file of it is moved into the table."""
    folder = f"{job.table.uri.rpartition('/')[0]}/.lakehub/staging/{job.table.name}"
    return staging.temporary_folder(folder, until=job.ends_at + _STAGING_MARGIN, now=job.started_at)


def commit_batch(
    job: Job, batch: staging.StagedBatch, plan: CommitPlan, commit: CommitAttempt | None = None
) -> JobReport:
    """Judge and write within the permit. `commit`: None: rows are compared with those that are stored (`commit_once`). Raises ReadAgain where what was read is out of date, after the permit was given back."""
    read_again = None
    if batch.rows and plan.rows_to_look_up(batch):
        prepare_look_up(job)
    with hold_write_permit(job):
        timeline = Timeline(job.table.uri)
        if plan.start is not None and (done := job.report_of_earlier_attempt(timeline, after=plan.start.began)):
            return done
        try:
            plan_now = _plan_within_permit(job, batch, plan, timeline)
        except rereading.ReadAgain as problem:
            read_again = problem
        else:
            return _commit_within_permit(job, batch, plan_now, commit or commit_once)
    raise read_again


def prepare_look_up(job: Job) -> None:
    """Before the permit, which a job without keys to look up takes at once."""
    index: Index = INDEXES.get(job.table.index)()
    index.prepare_look_up(job.spark, job.table, partial(hold_write_permit, job))


def _plan_within_permit(job: Job, batch: staging.StagedBatch, plan: CommitPlan, timeline: Timeline) -> CommitPlan:
    """With what the table says now that nobody else writes it."""
    if plan.start is None:
        return plan
    rereading.check_reading(plan.start, timeline, _partitions_read(job.table, batch), plan.position)
    keys = key_columns(job.table)
    evolution = rereading.evolution_now(job, plan.start, plan.evolution, batch.schema, keys)
    if plan.position is not None:
        return replace(plan, evolution=evolution)
    stamp = _stamp_after_load(job, timeline.checkpoint())
    return replace(plan, evolution=evolution, position=stamp, previous_position=stamp)


def _stamp_after_load(job: Job, checkpoint: Checkpoint | None) -> Position | None:
    """The checkpoint stays where it is; but an append-only table may now hold rows from beyond it."""
    if checkpoint is not None and (job.table.append_only or has_stored_note(checkpoint.position)):
        return with_rows_loaded_upto(checkpoint.position, job.spec.upto)
    return rereading.checkpoint_to_stamp(checkpoint)


def _partitions_read(table: TableSpec, batch: staging.StagedBatch) -> set[str] | None:
    """In which a row of the batch may have been deleted; None: in any."""
    if not batch.rows:
        return set()
    return batch.partitions if table.partition_column and record_locations.key_determines_partition(table) else None


def _plan_of_attempt(job: Job, plan: CommitPlan) -> CommitPlan:
    """With the newest commit that the stored rows are read at."""
    if plan.start is None:
        return plan
    timeline, began = Timeline(job.table.uri), plan.start.began
    since = (
        written_since(began, rereading.table_commits(timeline.commits_since(began).commits)) if plan.yields else None
    )
    return replace(plan, judged_at=timeline.latest_completion(), written_since=since)


def _commit_within_permit(job: Job, batch: staging.StagedBatch, plan: CommitPlan, commit: CommitAttempt) -> JobReport:
    """Errors first: a job that dies between the two commits finds them again under the same keys."""
    if batch.errors or batch.noted:
        append_errors(job, batch, plan)
    failpoint.reach("ingestion.before_write")
    before = Timeline(job.table.uri).latest_completion()
    for attempt in range(_MAX_ATTEMPTS):
        job.check_deadline()
        try:
            idle = commit(job, batch, _plan_of_attempt(job, plan))
            break
        except rereading.JudgeAgain:
            if attempt == _MAX_ATTEMPTS - 1:
                raise
        except Py4JJavaError as problem:
            stale = any(word in str(problem.java_exception) for word in _STALE_LOCATION_ERRORS)
            # An error does not mean that nothing was committed: the timeline knows.
            if _has_committed(job, since=before):
                idle = None
                break
            if not stale or attempt == _MAX_ATTEMPTS - 1:
                raise
    if idle is not None:
        return job.nothing_to_do_report(
            counts=idle, checkpoint=plan.position and dict(plan.position), schema=schema_facts_of(plan.evolution)
        )
    failpoint.reach("ingestion.after_commit")
    return report_of_commit(job)


def _has_committed(job: Job, *, since: str) -> bool:
    """Was this batch written? `since`: the completion that was the newest before; a commit that is older holds other rows, whatever its id."""
    return Timeline(job.table.uri).commit_of_run(job.spec.run_id, after=since) is not None


def append_errors(job: Job, batch: staging.StagedBatch, plan: CommitPlan) -> None:
    """Once for the same errors: an incremental that reads behind its watermark meets them again with each look. A job that was asked to
    read again says so: what it rejects is rejected anew."""
    run, is_look = run_of_commit(job.spec.run_id), job.spec.kind == "incremental"
    name = f"{batch.errors_digest:064x}" + ("" if is_look else f" {run}")
    facts = ErrorFacts(run, job.started_at + job.clock_ahead, "" if plan.start is None else plan.start.began)
    with job.phase("errors"):
        error_table.append_errors(
            job.spark, job.table, batch.errors_uri, batch.errors + batch.noted, facts, batch=name, may_repeat=is_look
        )


def report_of_commit(job: Job) -> JobReport:
    """The report of the commit that was just made, from the timeline."""
    with job.phase("report"):
        commit = Timeline(job.table.uri).commit_of_run(job.spec.run_id)
        assert commit is not None
        return job.report_of(commit)
