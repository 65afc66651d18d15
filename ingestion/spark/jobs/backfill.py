"""Given partitions, or rows of a captured table, read from the source again and upserted, beside incremental jobs.

The checkpoint is theirs: a commit here carries none, so that it never sets them back. What they write while the source is read stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ingestion.sources import ReadsRowsAgain
from ingestion.spark.changes.committing import commit_events
from ingestion.spark.contract.report import JobReport
from ingestion.spark.etl import runs as pipeline_runs
from ingestion.spark.job import Job, JobError
from ingestion.spark.loading import rereading, write_path
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import Timeline
from lakehub.kernel.partitions import parse_partition_name


def run(job: Job) -> JobReport:
    if job.spec.pipeline is not None:
        return pipeline_runs.backfill(job)
    timeline = hudi.check_table(job.table)
    if done := job.report_of_earlier_attempt(timeline):
        return done
    read_and_commit = _read_rows_and_merge if job.spec.keys else _read_and_commit
    return rereading.read_until_written(job, partial(read_and_commit, job, timeline))


def _read_rows_and_merge(job: Job, timeline: Timeline) -> JobReport:
    """As changes that are as old as the rows that were read: what is newer stands, also a delete. A row that is not there any more says nothing."""
    start, source = rereading.note_reading_start(job, timeline), job.open_source()
    if not job.table.has_metadata or not isinstance(source, ReadsRowsAgain):
        raise JobError(f"Single rows of `{job.table.name}` cannot be read again: it is not captured from a MariaDB.")
    checkpoint = start.checkpoint
    report = commit_events(job, start, source.rows_again(job.spec.keys), moves_checkpoint=False)
    return report or job.nothing_to_do_report(instant=checkpoint.instant, checkpoint=dict(checkpoint.position))


def _read_and_commit(job: Job, timeline: Timeline) -> JobReport:
    start = rereading.note_reading_start(job, timeline)
    checkpoint = start.checkpoint
    snapshot = job.open_source().snapshot(upto=job.spec.upto_at, only=_source_filter(job))
    arriving, reading = write_path.begin_reading(job, snapshot)
    if arriving is None:
        return job.nothing_to_do_report(instant=checkpoint.instant, checkpoint=dict(checkpoint.position))
    evolution = write_path.plan_schema(arriving, job.table, start.stored)
    with write_path.staging_folder(job) as uri:
        batch = write_path.stage_reading(job, reading, evolution, uri, job.spec.partitions)
        if not batch.read:
            return job.nothing_to_do_report(instant=checkpoint.instant, checkpoint=dict(checkpoint.position))
        plan = write_path.CommitPlan("upsert", evolution, has_stored_rows=True, position=None, start=start, yields=True)
        return write_path.commit_batch(job, batch, plan)


def _source_filter(job: Job) -> Mapping[str, Sequence[str]] | None:
    """What the source leaves out; of partitions that are no single value of a column it hands over all rows."""
    if not job.table.partition_column:
        return None
    form = write_path.partition_form_of(job.table)
    if form is None:
        return {job.table.partition_column: job.spec.partitions}
    if form.is_time or len(form.columns) > 1:
        return None
    named = (parse_partition_name(name, form.grain, form.zone) for name in job.spec.partitions)
    return {form.columns[0]: [form.value_of(partition) for partition in named]}
