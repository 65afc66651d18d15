"""Rejected rows once more, as they are or with other values, by the path of every row: made to fit, judged, written.

The source is not asked and the checkpoint stays as it is. A row that was written after a row was rejected is newer, and stands unless its reference
key is smaller. What fits is then marked as resolved in the error table; what does not stays there with the new reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa

from ingestion.domain.checkpoint import run_of_commit
from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.spark.changes.republishing import republish, row_of_event
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import ReplaySpec
from ingestion.spark.job import Job
from ingestion.spark.loading import rereading, staging, write_path
from ingestion.spark.loading.fitting import FitRules, fit_rows
from ingestion.spark.loading.raw_rows.replayed import ReplayedRow, chunk_of, replayed_row
from ingestion.spark.rejected import error_table
from ingestion.spark.rejected.error_table import ErrorFacts
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import Timeline
from ingestion.spark.write_permit import hold_write_permit

_MAX_RAW = 5_000_000
"""Characters of a raw row."""
_MAX_CHARACTERS = 64_000_000
"""Of all rows of a run with the values that each is given, which are kept for each; the others stay open."""


def run(job: Job) -> JobReport:
    """One commit for the rows of each set of columns: a column that a row does not have keeps its stored value."""
    timeline, replay = hudi.check_table(job.table), job.spec.replay
    assert replay is not None  # the spec has checked it
    report = job.nothing_to_do_report()
    if job.table.has_metadata:
        rows = [*_read_rows(job, replay)]
        return republish(job, rows) if rows else report
    for rows in _rows_by_columns(_read_rows(job, replay)):
        # An earlier attempt has committed some of them: they are judged again, and are redelivered.
        while timeline.commit_of_run(job.spec.run_id):
            job.begin_next_commit()
        report = report.followed_by(rereading.read_until_written(job, partial(_fit_and_commit, job, timeline, rows)))
    return report


def _read_rows(job: Job, replay: ReplaySpec) -> Iterator[ReplayedRow]:
    if not replay.keys or not Timeline(job.table.error_uri).exists:
        return
    is_log = job.table.has_metadata
    types, characters = hudi.stored_schema(job.spark, job.table).types, 0
    with job.phase("read"):
        for row in error_table.open_rows(job.spark, job.table, replay.keys, max_raw=_MAX_RAW).toLocalIterator():
            job.check_deadline()
            fixed = replay.fixes.get(row["error_key"], replay.values)
            characters += len(row["raw"] or "") + len(fixed)
            if characters > _MAX_CHARACTERS:
                return
            yield replayed_row(row.asDict(), fixed, types, max_raw=_MAX_RAW, row_of=row_of_event if is_log else None)


def _rows_by_columns(rows: Iterable[ReplayedRow]) -> list[list[ReplayedRow]]:
    groups: dict[frozenset[str], list[ReplayedRow]] = defaultdict(list)
    for row in rows:
        groups[frozenset(row.values)].append(row)
    return list(groups.values())


def _fit_and_commit(job: Job, timeline: Timeline, rows: Sequence[ReplayedRow]) -> JobReport:
    start = rereading.note_reading_start(job, timeline)
    evolution = write_path.plan_schema(_arriving(job, rows, start.stored), job.table, start.stored)
    with write_path.staging_folder(job) as uri:
        batch = staging.StagedBatch(uri, Schema(tuple(c for c in evolution.target if c.name not in evolution.missing)))
        resolved = _stage(job, batch, rows)
        plan = write_path.CommitPlan("upsert", evolution, has_stored_rows=True, position=None, start=start, yields=True)
        report = write_path.commit_batch(job, batch, plan)
        _append_resolved(job, uri, resolved)
        return report


def _arriving(job: Job, rows: Sequence[ReplayedRow], stored: Schema) -> Schema:
    """The columns that the rows have, and those without which no row is one: there they have nulls, for which they are rejected."""
    form = job.table.partition_from
    required = {*write_path.key_columns(job.table), *(form.columns if form else ())}
    names = required | set(rows[0].values)
    return Schema(tuple(SchemaColumn(column.name, column.type) for column in stored if column.name in names))


def _stage(job: Job, batch: staging.StagedBatch, rows: Sequence[ReplayedRow]) -> list[ReplayedRow]:
    """The rows that fit are returned; the others are the errors of the batch."""
    table = job.table
    form = write_path.partition_form_of(table)
    rules = FitRules(
        batch.schema, write_path.key_columns(table), table.partition_column, form, record_key=table.record_key
    )
    readable = [row for row in rows if not row.problem]
    fitted = fit_rows(chunk_of(readable), rules)
    rejected = {misfit.row: misfit for misfit in fitted.rejected}
    kept = [row for place, row in enumerate(readable) if place not in rejected]
    errors = [
        row.error(misfit.column, misfit.reason)
        for place, misfit in rejected.items()
        if place is not None
        for row in [readable[place]]
    ]
    errors += [row.error("", row.problem) for row in rows if row.problem]
    staging.add_counts(batch, fitted, len(readable), table.partition_column, None)
    batch.read, batch.errors, batch.is_replayed = len(rows), len(errors), True
    staged = staging.with_sequence(fitted.rows, 0).append_column(
        staging.TABLE_AT_COLUMN, pa.array([row.table_at for row in kept], pa.string())
    )
    staging.write_staged_table(batch.rows_uri, staged)
    rejected_rows = staging.error_rows_table(errors)
    batch.errors_digest = staging.add_digests(0, rejected_rows)
    staging.write_staged_table(batch.errors_uri, rejected_rows)
    job.tell_rows(len(rows))
    return kept


def _append_resolved(job: Job, uri: str, rows: Sequence[ReplayedRow]) -> None:
    """After the commit of the data: a row that is told to be resolved is in the table."""
    assert job.spec.replay is not None
    if not rows:
        return
    resolved_uri = f"{uri}/resolved"
    staged = staging.error_rows_table([row.error(row.column, row.reason) for row in rows])
    staging.write_staged_table(resolved_uri, staged)
    now = job.started_at + job.clock_ahead
    facts = ErrorFacts(run_of_commit(job.spec.run_id), now, "", now, job.spec.replay.asked_by)
    name = f"{staging.add_digests(0, staged):064x} resolved {facts.run}"
    with hold_write_permit(job), job.phase("errors"):
        error_table.append_errors(job.spark, job.table, resolved_uri, len(rows), facts, batch=name)
