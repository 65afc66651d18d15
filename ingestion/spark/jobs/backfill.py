"""Given partitions read from the source again and upserted. The latest checkpoint is carried forward, so that incremental jobs go on where they were."""

from __future__ import annotations

from ingestion.spark import ingest
from ingestion.spark.job import Job
from ingestion.spark.jobs.incremental import known_checkpoint
from ingestion.spark.report import JobReport
from ingestion.spark.tables import hudi


def run(job: Job) -> JobReport:
    timeline = hudi.check(job.table)
    if done := job.done_before(timeline):
        return done
    checkpoint = known_checkpoint(timeline)
    source = job.source()
    evolution = ingest.plan_schema(source, job.table, hudi.stored_schema(job.spark, job.table))
    only = {job.table.partition_column: job.spec.partitions} if job.table.partition_column else None
    with ingest.folder(job) as uri:
        batch = ingest.staged(job, source.snapshot(upto=job.spec.upto_at, only=only), evolution, uri)
        if not batch.read:
            return job.nothing_to_do(instant=checkpoint.instant, checkpoint=dict(checkpoint.position))
        at = checkpoint.position
        return ingest.commit(job, batch, ingest.Plan("upsert", evolution, stored=True, position=at, before=at))
