"""The first load of a table: everything that the source has, in one commit that carries the checkpoint.

A table that has a checkpoint is not loaded twice, whatever became of the report. With `replace` everything is read again and takes the place of what is there in one commit:
readers see the old rows until then, and the timeline goes on (docs/ingestion.md says what becomes of history and incidents).
"""

from __future__ import annotations

from ingestion.domain.schema import Schema
from ingestion.spark.contract.report import JobReport
from ingestion.spark.job import Job, JobError
from ingestion.spark.loading import write_path
from ingestion.spark.loading.staging import StagedBatch
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import LakeCommit, Timeline


def run(job: Job) -> JobReport:
    timeline = Timeline(job.table.uri)
    commits = _existing_commits(job, timeline)
    if done := job.report_of_earlier_attempt(timeline):
        return done
    if commits and not job.spec.replace:
        return _report_of_loaded_table(job, timeline)
    stored = hudi.stored_schema(job.spark, job.table) if commits else Schema(())
    source = job.open_source()
    evolution = write_path.plan_schema(source, job.table, stored)
    with write_path.staging_folder(job) as uri:
        batch = write_path.stage_reading(job, source.snapshot(upto=job.spec.upto_at), evolution, uri)
        _refuse_rows_without_key(job, batch)
        if commits and not batch.rows:
            raise JobError(
                f"The source has no row that fits ({batch.read} read, {batch.errors} do not fit), so replacing would empty the table at {job.table.uri}; nothing was written. "
                "Look at the source; to empty the table on purpose, drop the copy."
            )
        operation = "insert_overwrite_table" if commits else "bulk_insert"
        return write_path.commit_batch(
            job, batch, write_path.CommitPlan(operation, evolution, has_stored_rows=False, position=batch.position)
        )


def _refuse_rows_without_key(job: Job, batch: StagedBatch) -> None:
    """A key that is null in some rows is the wrong key: they would be left out now, and each time. A partition that is null
    is a finding, and all other partitions go on."""
    rows = {name: batch.nulls[name] for name in job.table.record_key if batch.nulls[name]}
    rows.pop(job.table.partition_column or "", None)
    if rows:
        counts = ", ".join(f"`{name}` in {count:,}" for name, count in rows.items())
        raise JobError(
            f"Of {batch.read:,} rows some have no record key ({', '.join(job.table.record_key)}); null is {counts}. Nothing was "
            "written. Fill it in at the source, or off-board the dataset and onboard it with a record key that is never null; "
            "a dataset that is only monitored may have such rows."
        )


def _existing_commits(job: Job, timeline: Timeline) -> tuple[LakeCommit, ...]:
    if not timeline.exists:
        hudi.check_location_free(job.table)
        return ()
    commits = timeline.commits()
    if commits:
        hudi.check_table(job.table)
    else:
        # A first write died before it committed anything; its keys may have been others.
        hudi.remove_failed_first_write(job.table)
    return commits


def _report_of_loaded_table(job: Job, timeline: Timeline) -> JobReport:
    checkpoint = timeline.checkpoint()
    if checkpoint is None:
        raise JobError(
            f"The table at {job.table.uri} has commits, but none of them carries a checkpoint of ours. "
            "To take its place, bootstrap with `replace`; to keep it, name another URI."
        )
    return job.nothing_to_do_report(instant=checkpoint.instant, checkpoint=dict(checkpoint.position))
