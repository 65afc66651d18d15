"""One attempt to commit a batch: judged against the newest stored rows, then written with its checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame

from ingestion.domain.accounting import RowCounts
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema, SchemaEvolution
from ingestion.domain.write_races import WrittenSince
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import direct_write, record_locations
from ingestion.spark.file_groups.batch_keys import BatchKeys
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job, UnbalancedCounts, schema_facts
from ingestion.spark.loading import rereading, staging
from ingestion.spark.loading.judging import Judged
from ingestion.spark.loading.row_fates import (
    FateCounts,
    applied_rows,
    assign_fates,
    count_fates,
    has_each_key_once,
    keys_of_batch,
    new_keys,
    newest_of_each_key,
    rows_as_in_table,
    rows_in_ranges,
    stored_rows_of_batch,
)
from ingestion.spark.loading.small_batches import SmallBatch, columns_to_write, open_small_batch
from ingestion.spark.tables import hudi
from ingestion.spark.tables.checkpoint_metadata import commit_metadata
from ingestion.spark.tables.commit_failpoint import sleep_inside_commit
from ingestion.spark.tables.row_order import order_options
from ingestion.spark.tables.timeline import Timeline

_MAX_BROADCAST_ROWS = 200_000
"""The keys of a batch up to this size are sent to where the stored rows are, instead of moving those."""


@dataclass(frozen=True)
class CommitPlan:
    """How a batch is to be committed. `has_stored_rows` False: the batch is all that the table will hold.

    `position`: where the source stands after it, None for a batch that says nothing of that; `previous_position`: where it stood.
    `start`: the table when reading began; None for a job that had the table to itself. `yields`: stored rows that were written since
    then stand, unless the batch has a greater reference key. `written_since` says which these are, and `judged_at` which completion was the
    newest when they were read: both are known within the permit only.
    `inserts_new`: the table is append-only and holds no row that the source calls new, so these are not looked up.
    """

    operation: str
    evolution: SchemaEvolution
    has_stored_rows: bool
    position: Position | None
    previous_position: Position | None = None
    start: rereading.ReadingStart | None = None
    yields: bool = False
    written_since: WrittenSince | None = None
    judged_at: str = ""
    inserts_new: bool = False

    def rows_to_look_up(self, batch: staging.StagedBatch) -> Sequence[range]:
        """By their sequence: of these the table may hold the keys."""
        if not self.has_stored_rows:
            return []
        return batch.known if self.inserts_new else [range(batch.read)]


def commit_once(job: Job, batch: staging.StagedBatch, plan: CommitPlan) -> RowCounts | None:
    """The counts where there was nothing to commit: all rows were known, and the source stands where it stood."""
    index: Index = INDEXES.get(job.table.index)()
    if not batch.rows:
        _commit_no_rows(job, batch, plan, index)
        return None
    if plan.has_stored_rows:
        with job.phase("judge"):
            small = open_small_batch(job, batch, plan.evolution.target, index, plan.rows_to_look_up(batch))
            counts = {"read": batch.read, "errors": batch.errors}
            judged = None if small is None else small.judge(job, index, **counts, since=plan.written_since)
        if small is not None and judged is not None:
            return _commit_small(job, small, judged, batch, plan, index)
    return _commit_by_spark(job, batch, plan, index)


def _commit_no_rows(job: Job, batch: staging.StagedBatch, plan: CommitPlan, index: Index) -> None:
    """Only the checkpoint moves; rows that were to be replaced are deleted."""
    counted, options = FateCounts(RowCounts(read=batch.read, errors=batch.errors)), index.write_options(job.table)
    marks, target = marks_of(job, batch, counted, plan), plan.evolution.target
    if plan.operation == "insert_overwrite_table" and _delete_all(job, plan, options, marks):
        return
    is_without_spark = plan.has_stored_rows and index.is_up_to_date(job.table)
    columns = columns_to_write(job.spark, job.table, target) if is_without_spark else None
    if columns is None:
        _write(job, hudi.empty_frame(job.spark, target), replace(plan, operation="upsert"), options, marks)
        return
    check_judged_now(job, plan)
    with job.phase("write"):
        direct_write.write_rows(job.spark, job.table, [], columns, options, marks)


def _delete_all(job: Job, plan: CommitPlan, options: Mapping[str, str], marks: Mapping[str, str]) -> bool:
    """False: there is no row. To overwrite a table by nothing would leave it as it is."""
    stored = record_locations.with_locations(hudi.read_table(job.spark, job.table), job.table)
    if stored.isEmpty():
        return False
    _write(job, stored, replace(plan, operation="delete"), {**options, **record_locations.PREPPED}, marks)
    return True


def _commit_small(
    job: Job, small: SmallBatch, judged: Judged, batch: staging.StagedBatch, plan: CommitPlan, index: Index
) -> RowCounts | None:
    counted = FateCounts(judged.counts, judged.moved)
    if judged.doubled and not job.table.append_only:
        raise doubled_keys(job.table, len(judged.doubled))
    check_balance(counted, job.table)
    if has_nothing_to_commit(counted, plan):
        return counted.counts
    marks, options = marks_of(job, batch, counted, plan), index.write_options(job.table)
    check_judged_now(job, plan)
    with job.phase("write"):
        direct_write.write_rows(job.spark, job.table, judged.rows, small.avro_schema, options, marks)
    return None


def doubled_keys(table: TableSpec, keys: int) -> UnbalancedCounts:
    return UnbalancedCounts(
        # Everybody who is signed in sees this: without the keys, which are rows of data.
        f"`{table.name}` holds record keys of this batch more than once ({keys:,}); nothing was written. "
        "Verify the index: its result has examples. Look for another writer, then bootstrap it again."
    )


def _commit_by_spark(job: Job, batch: staging.StagedBatch, plan: CommitPlan, index: Index) -> RowCounts | None:
    rows = staged_rows(job, batch)
    if not plan.rows_to_look_up(batch):
        # None of the keys is stored: where none comes twice either, there is nothing to judge.
        plan = replace(plan, operation="insert", has_stored_rows=False) if plan.has_stored_rows else plan
        with job.phase("judge"):
            are_all_new = has_each_key_once(rows, job.table, plan.evolution.target, batch.rows)
        if are_all_new:
            counted = FateCounts(RowCounts(read=batch.read, applied=batch.rows, errors=batch.errors))
            _write_rows(job, rows_as_in_table(rows, plan.evolution.target), {}, batch, plan, counted)
            return None
    return _judge_and_commit(job, rows, batch, plan, index)


def _judge_and_commit(
    job: Job, rows: DataFrame, batch: staging.StagedBatch, plan: CommitPlan, index: Index
) -> RowCounts | None:
    with job.phase("judge"):  # an index may be asked for keys here
        judged = _rows_with_fates(job, rows, batch, plan, index).persist()
    try:
        with job.phase("judge"):
            counted = count_fates(judged, job.table, read=batch.read, errors=batch.errors)
            rereading.check_entries(job, index, new_keys(judged, job.table))
        if has_nothing_to_commit(counted, plan):
            check_balance(counted, job.table)
            return counted.counts
        frame, options = _rows_to_write(judged, job.table, plan, counted)
        _write_rows(job, frame, options, batch, plan, counted)
        return None
    finally:
        judged.unpersist()


def _write_rows(
    job: Job,
    frame: DataFrame,
    options: Mapping[str, str],
    batch: staging.StagedBatch,
    plan: CommitPlan,
    counted: FateCounts,
) -> None:
    check_balance(counted, job.table)
    index: Index = INDEXES.get(job.table.index)()
    options = {**index.write_options(job.table), **options}
    if plan.operation == "bulk_insert":
        options |= order_options(job.spark, job.table, batch.rows_by_partition, batch.row_bytes)
    _write(job, frame, plan, options, marks_of(job, batch, counted, plan))


def has_nothing_to_commit(counted: FateCounts, plan: CommitPlan) -> bool:
    return not counted.counts.applied and plan.position == plan.previous_position


def staged_rows(job: Job, batch: staging.StagedBatch) -> DataFrame:
    """As they were written, in the types of the batch."""
    types = batch.schema.types | {staging.SEQUENCE_COLUMN: "long"}
    if batch.is_replayed:
        types |= {staging.TABLE_AT_COLUMN: "string"}
    # Told rather than inferred: that would be a Spark job more.
    columns = ", ".join(f"`{name}` {type_}" for name, type_ in types.items())
    return job.spark.read.schema(columns).parquet(batch.rows_uri)


def _rows_with_fates(
    job: Job, rows: DataFrame, batch: staging.StagedBatch, plan: CommitPlan, index: Index
) -> DataFrame:
    target = plan.evolution.target
    sought = plan.rows_to_look_up(batch)
    stored_rows = _stored_rows(job, rows, batch, target, index, sought) if sought else None
    return assign_fates(rows, job.table, target, stored_rows, plan.written_since)


def _stored_rows(
    job: Job, rows: DataFrame, batch: staging.StagedBatch, target: Schema, index: Index, sought: Sequence[range]
) -> DataFrame:
    """Those that have the keys of the rows with a sequence in `sought`, and others where these are many."""
    count = min(batch.rows, sum(map(len, sought)))
    keys = keys_of_batch(rows_in_ranges(rows, sought), job.table, target)
    batch_keys = BatchKeys(keys, count, batch.partitions, job.table)
    stored_rows = index.stored_rows(job.spark, job.table, batch_keys)
    if count <= _MAX_BROADCAST_ROWS:
        stored_rows = stored_rows_of_batch(keys, stored_rows, job.table)
    return newest_of_each_key(stored_rows, job.table) if job.table.append_only else stored_rows


def _rows_to_write(
    judged: DataFrame, table: TableSpec, plan: CommitPlan, counted: FateCounts
) -> tuple[DataFrame, dict[str, str]]:
    """With their locations, unless the table is new, or keys are not met again by their text: those Hudi looks up."""
    rows = applied_rows(judged)
    if not plan.has_stored_rows or not _are_met_again(table, plan.evolution.target, counted):
        return record_locations.without_locations(rows), {}
    if counted.moved:
        return record_locations.with_moves(rows, table)
    return record_locations.with_locations(rows, table), record_locations.PREPPED


def _are_met_again(table: TableSpec, target: Schema, counted: FateCounts) -> bool:
    """By a later batch, for which Hudi looks the keys up by their text."""
    if record_locations.key_determines_partition(table):
        return True
    return not counted.empty_keys and record_locations.has_certain_keys(table, target)


def _write(job: Job, frame: DataFrame, plan: CommitPlan, options: Mapping[str, str], marks: Mapping[str, str]) -> None:
    check_judged_now(job, plan)
    with job.phase("write"), sleep_inside_commit(job.spark) as failing:
        hudi.write_commit(frame, job.table, plan.operation, {**options, **failing}, marks)


def check_judged_now(job: Job, plan: CommitPlan) -> None:
    """Raises JudgeAgain where a commit was completed since the stored rows were read."""
    if plan.judged_at:
        rereading.check_judged(Timeline(job.table.uri), plan.judged_at)


def marks_of(job: Job, batch: staging.StagedBatch, counted: FateCounts, plan: CommitPlan) -> dict[str, str]:
    """What travels in the commit's metadata."""
    run = job.run_metadata(
        counted.counts, schema_facts_of(plan.evolution), batch.oldest, batch.newest, batch.unusable_cursors
    )
    run |= batch.notes
    if batch.noted:
        run["nulled"] = batch.noted
    if counted.moved:
        run["moved"] = counted.moved
    index: Index = INDEXES.get(job.table.index)()
    limitation = keys_not_asked_for(job.table, plan.evolution.target) or index.limitation(job.table)
    if limitation is not None:
        run["index_limitation"] = limitation
    if job.table.partition_from is not None:
        run |= batch.misplaced_facts
    return commit_metadata(run=run, checkpoint=plan.position)


def keys_not_asked_for(table: TableSpec, target: Schema) -> str:
    """Why no index is asked for keys that it could be asked for, and what to do; empty: it is."""
    if table.index == "simple" or record_locations.has_certain_keys(table, target):
        return ""
    if record_locations.key_determines_partition(table):
        return ""  # only the batch's partitions are read
    types = ", ".join(f"`{name}` {target.types[name]}" for name in table.record_key)
    return (
        f"The index `{table.index}` cannot be asked for the record key ({types}): keys are looked up as text, and only texts and whole numbers are "
        "written alike by everyone. Load a view that has the other columns of the key as text."
    )


def check_balance(counted: FateCounts, table: TableSpec) -> None:
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
        **({"refused": evolution.refused} if evolution.refused else {}),
    )
