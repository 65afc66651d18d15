"""Events of a changelog, merged into the table in one commit that carries where the log was read to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

import pyarrow as pa

from ingestion.capture.null_instead import nulls_misfits
from ingestion.domain.accounting import RowCounts
from ingestion.domain.lag import spread_of_times
from ingestion.domain.merging.events import Version
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN, SNAPSHOT_SOURCE, reference_type_of
from ingestion.domain.schema import Schema, SchemaEvolution
from ingestion.heatpipe.decoder import Decoded
from ingestion.heatpipe.reading import ERRORS_SUFFIX, BrokenEvent, place_in_log
from ingestion.heatpipe.row_keys import row_key_text
from ingestion.heatpipe.unencoded_row import UnencodedRow
from ingestion.sources import LoggedEvents, LogReading
from ingestion.spark.changes.accepted_columns import with_accepted
from ingestion.spark.changes.broken_raw import broken_raw
from ingestion.spark.changes.cells import siblings_of
from ingestion.spark.changes.fitting import FittedChanges, fit_changes
from ingestion.spark.changes.history import KEPT, HistoryBatch, write_history
from ingestion.spark.changes.merging import Change, MergeRules, merge_changes
from ingestion.spark.changes.tombstones import read_tombstones, write_tombstones
from ingestion.spark.contract.report import JobReport
from ingestion.spark.file_groups import direct_write
from ingestion.spark.file_groups.arrow_types import arrow_type
from ingestion.spark.file_groups.stored_rows import KEY, read_stored_rows
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job, JobError
from ingestion.spark.loading import rereading, staging, write_path
from ingestion.spark.loading.committing import (
    CommitPlan,
    check_balance,
    check_judged_now,
    doubled_keys,
    has_nothing_to_commit,
    marks_of,
)
from ingestion.spark.loading.fitting import RejectedRow
from ingestion.spark.loading.judging import StoredRow, partition_path, stored_rows_of
from ingestion.spark.loading.rereading import ReadingStart
from ingestion.spark.loading.row_fates import FateCounts
from ingestion.spark.loading.small_batches import columns_to_write, files_of_keys
from ingestion.spark.tables import hudi
from ingestion.spark.tables.checkpoint_metadata import commit_metadata
from lakehub.kernel import failpoint

TOMBSTONE_MARGIN = timedelta(days=7)
"""Beyond what the log keeps: an event may wait in the error table, and be published again."""


@dataclass(frozen=True)
class _Batch:
    """Events that fit, in the order of the log."""

    events: LoggedEvents
    fitted: FittedChanges
    emptied: Version | None = None

    @property
    def changes(self) -> tuple[Change, ...]:
        return self.fitted.changes


def commit_events(
    job: Job, start: ReadingStart, reading: LogReading, *, moves_checkpoint: bool = True
) -> JobReport | None:
    """None: there is nothing to read. `moves_checkpoint`: the events are those of the log from there on."""
    with job.phase("read"):
        events = next(reading.batches, None)
    if not isinstance(events, LoggedEvents):
        return None
    job.tell_rows(events.rows)
    evolution = with_accepted(_evolution(job, events, start.stored), reading.accepted, job.table)
    with write_path.staging_folder(job) as uri:
        with job.phase("read"):
            columns = _without_metadata(evolution.target)
            batch = _Batch(
                events,
                fit_changes(
                    events.decoded,
                    job.table,
                    columns,
                    write_path.partition_form_of(job.table),
                    nulls_misfits=nulls_misfits(job.source_spec.options),
                ),
                Version(reading.emptied.before, "", (0,)) if reading.emptied.before else None,
            )
            staged = _stage(batch, uri, evolution, reading, keeps_history=job.table.keeps_history)
        after, before = (staged.position, start.checkpoint.position) if moves_checkpoint else (None, None)
        plan = CommitPlan("upsert", evolution, True, after, before, start)
        report = write_path.commit_batch(job, staged, plan, partial(_commit_once, batch))
        return replace(report, has_more=reading.has_more())


def _evolution(job: Job, events: LoggedEvents, stored: Schema) -> SchemaEvolution:
    """Of broken messages alone the table learns nothing."""
    return write_path.plan_schema(events.schema, job.table, stored) if events.decoded else SchemaEvolution(stored)


def _without_metadata(schema: Schema) -> Schema:
    return Schema(tuple(column for column in schema if column.name != METADATA_COLUMN))


def _stage(
    batch: _Batch, uri: str, evolution: SchemaEvolution, reading: LogReading, *, keeps_history: bool
) -> staging.StagedBatch:
    """What the commit will say of the batch; of its rows only those that are rejected are written down."""
    rejected, notes = [*_error_rows(batch)], [*_notes(batch)]
    errors = staging.error_rows_table([*rejected, *notes])
    if errors.num_rows:
        staging.write_staged_table(f"{uri}/errors", errors)
    times = [each.event.source_committed_at for each in batch.events.decoded if each.event.source_committed_at]
    facts = {"source_times": spread_of_times(times), "logged_hours": dict(batch.events.logged_hours)}
    return staging.StagedBatch(
        uri,
        evolution.target,
        read=batch.events.rows,
        rows=len(batch.changes),
        errors=len(rejected),
        noted=len(notes),
        errors_digest=staging.add_digests(0, errors),
        oldest=min(times, default=None),
        newest=max(times, default=None),
        position=reading.position(),
        rows_by_partition=None,
        notes=facts | ({KEPT: True} if keeps_history else {}),
    )


def _error_rows(batch: _Batch) -> Iterator[Mapping[str, str | None]]:
    events = batch.events
    for place, row in batch.fitted.rejected.items():
        decoded = events.decoded[place]
        yield _error_row(_place(decoded), row)
    for broken in events.broken:
        yield _error_row(broken.place, RejectedRow(broken.problem.field, broken.problem.labelled, _raw(broken)))
    for unreadable in events.unreadable:
        yield _error_row(unreadable.raw, RejectedRow("", unreadable.reason, unreadable.raw))


def _place(decoded: Decoded) -> str:
    """A row that was read has none in the log: it is named by its key and the transaction after which it was so."""
    topic, position = decoded.schema.subject, decoded.event.position
    if decoded.source == SNAPSHOT_SOURCE:
        return f"{topic} {row_key_text(decoded.event.row_key)} after transaction {position[0]}"
    return place_in_log(topic, *position)


def _notes(batch: _Batch) -> Iterator[Mapping[str, str | None]]:
    """Of events that are changes, with null in place of what did not fit: for their producer, or for the table."""
    for place, decoded in enumerate(batch.events.decoded):
        note, before = batch.fitted.nulled.get(place), decoded.nulled
        if place not in batch.fitted.rejected and (note or before):
            yield _error_row(_place(decoded), _joined(before, note))


def _joined(before: UnencodedRow | None, note: RejectedRow | None) -> RejectedRow:
    if before is None:
        assert note is not None
        return note
    reasons = [before.reason, *([note.reason] if note is not None else [])]
    return RejectedRow(before.column, "; ".join(reasons), before.to_json().decode())


def _error_row(place: str, row: RejectedRow) -> dict[str, str | None]:
    """Named by the place of its message: read again, it is the same error."""
    key = hashlib.sha256(place.encode()).hexdigest()
    return {"error_key": key, "source": place, "column": row.column, "reason": row.reason, "raw": row.raw}


def _raw(broken: BrokenEvent) -> str:
    value = broken.message.value or b""
    if broken.topic.endswith(ERRORS_SUFFIX):
        return value.decode(errors="backslashreplace")
    return broken_raw(broken.problem.defect, value)


def _commit_once(batch: _Batch, job: Job, staged: staging.StagedBatch, plan: CommitPlan) -> RowCounts | None:
    """Within the permit. The counts where there was nothing to commit."""
    table, target = job.table, plan.evolution.target
    index: Index = INDEXES.get(table.index)()
    with job.phase("write"):
        columns = _columns_to_write(job, target, index)
    with job.phase("judge"):
        tombstones = read_tombstones(job.spark, table, {change.key for change in batch.changes})
        stored_rows = _stored_rows(job, batch.changes, target, index)
        rules = _rules(job, batch, target)
        merged = merge_changes(batch.changes, stored_rows, tombstones.states, rules, errors=staged.errors)
    if merged.doubled:
        raise doubled_keys(table, len(merged.doubled))
    counted = FateCounts(merged.counts, merged.moved)
    check_balance(counted, table)
    if has_nothing_to_commit(counted, plan):
        return counted.counts
    with job.phase("write"):
        options = index.write_options(table)
        if table.keeps_history:
            versions = HistoryBatch(batch.changes, stored_rows, merged, target, rules.columns_of)
            write_history(job.spark, table, versions, run=job.spec.run_id, now=job.started_at)
            failpoint.reach("ingestion.after_history")
        if merged.tombstones:
            write_tombstones(
                job.spark,
                table,
                merged.tombstones,
                tombstones,
                run=job.spec.run_id,
                now=job.started_at,
                kept_for=TOMBSTONE_MARGIN + timedelta(seconds=float(job.source_spec.options["retention_s"])),
            )
            failpoint.reach("ingestion.after_tombstones")
        check_judged_now(job, plan)
        direct_write.write_rows(job.spark, table, merged.rows, columns, options, marks_of(job, staged, counted, plan))
    return None


def _rules(job: Job, batch: _Batch, target: Schema) -> MergeRules:
    columns = _without_metadata(target).names
    versions = {version: _with_partition(names, job) for version, names in batch.events.columns_of.items()}
    return MergeRules(
        job.table,
        columns,
        lambda version: versions.get(version, ()),
        reference_type_of(target.types[METADATA_COLUMN]),
        siblings_of(batch.events.decoded, columns),
        batch.emptied,
    )


def _with_partition(names: Sequence[str], job: Job) -> tuple[str, ...]:
    """A partition that is made from columns of the row is one of them."""
    form, column = write_path.partition_form_of(job.table), job.table.partition_column
    if form is None or column is None or column in names or not {*form.columns} <= {*names}:
        return tuple(names)
    return (*names, column)


def _stored_rows(job: Job, changes: Sequence[Change], target: Schema, index: Index) -> list[StoredRow]:
    """Those of the table that have the keys of the changes."""
    table, keys = job.table, sorted({change.key for change in changes})
    if not keys:
        return []
    carries = [change.event.values for change in changes if table.partition_column in change.event.values]
    partitions = {partition_path(values, table) for values in carries} if table.partition_column else {""}
    files = files_of_keys(job.spark, table, index, keys, partitions)
    columns = pa.schema([(name, arrow_type(type_)) for name, type_ in target.types.items()])
    try:
        stored = read_stored_rows(table.uri, files, keys, columns)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise JobError(
            f"Rows of `{table.name}` that have changed cannot be read in the columns that the table has now: {problem}. Nothing was written. Bootstrap the dataset with `replace`."
        ) from problem
    rereading.check_entries(job, index, {*keys}.difference(stored[KEY].to_pylist()))
    return stored_rows_of(stored)


def _columns_to_write(job: Job, target: Schema, index: Index) -> str:
    """The columns as the table's newest commit has them. New ones come by a commit of their own, which is Spark's and has no rows; what is compared with the
    table is compared after it. Raises JudgeAgain then, JobError."""
    table = job.table
    columns = columns_to_write(job.spark, table, target) if index.is_up_to_date(table) else None
    if columns is not None:
        return columns
    marks = commit_metadata(run={"run_id": "", "kind": "schema"}, checkpoint=None)
    hudi.write_commit(hudi.empty_frame(job.spark, target), table, "upsert", index.write_options(table), marks)
    if columns_to_write(job.spark, table, target) is None:
        raise JobError(
            f"The table at {table.uri} does not have the columns that its changes have, or this Spark lacks the jar `hudi-java-client`. "
            "Nothing was written. Run `make setup`, or give Spark the jar."
        )
    raise rereading.JudgeAgain(f"The table at {table.uri} has got new columns.")
