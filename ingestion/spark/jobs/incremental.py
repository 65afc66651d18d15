"""What changed in the source since the checkpoint, upserted; the new checkpoint travels in the same commit."""

from __future__ import annotations

from ingestion.domain.checkpoint import Checkpoint, is_restamp_due
from ingestion.domain.schema import SchemaEvolution
from ingestion.spark.contract.report import JobReport
from ingestion.spark.job import Job
from ingestion.spark.loading import staging, write_path
from ingestion.spark.tables import hudi


def run(job: Job) -> JobReport:
    timeline = hudi.check_table(job.table)
    if done := job.report_of_earlier_attempt(timeline):
        return done
    checkpoint = job.require_checkpoint(timeline)
    source = job.open_source()
    evolution = write_path.plan_schema(source, job.table, hudi.stored_schema(job.spark, job.table))
    with write_path.staging_folder(job) as uri:
        reading = source.changes(checkpoint.position, upto=job.spec.upto_at)
        batch = write_path.stage_reading(job, reading, evolution, uri)
        if reading.unchanged() or not batch.read:
            return _report_nothing_new(job, checkpoint, batch, evolution)
        plan = write_path.CommitPlan(
            "upsert", evolution, has_stored_rows=True, position=batch.position, previous_position=checkpoint.position
        )
        return write_path.commit_batch(job, batch, plan)


def _report_nothing_new(
    job: Job, checkpoint: Checkpoint, batch: staging.StagedBatch, evolution: SchemaEvolution
) -> JobReport:
    """No commit, unless other writers' commits are about to push the checkpoint into the archive."""
    if is_restamp_due(checkpoint, commits_kept=hudi.MIN_COMMITS_KEPT):
        empty = staging.StagedBatch(batch.uri, batch.schema)
        return write_path.commit_batch(
            job, empty, write_path.CommitPlan("upsert", evolution, has_stored_rows=True, position=checkpoint.position)
        )
    return job.nothing_to_do_report(
        instant=checkpoint.instant, checkpoint=dict(checkpoint.position), schema=write_path.schema_facts_of(evolution)
    )
