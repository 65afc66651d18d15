"""What changed in the source since the checkpoint, upserted; the new checkpoint travels in the same commit."""

from __future__ import annotations

from ingestion.domain.checkpoint import Checkpoint, due_for_stamping
from ingestion.domain.schema import Evolution
from ingestion.spark import ingest, staging
from ingestion.spark.job import Job, JobError
from ingestion.spark.report import JobReport
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import Timeline


def run(job: Job) -> JobReport:
    timeline = hudi.check(job.table)
    if done := job.done_before(timeline):
        return done
    checkpoint = known_checkpoint(timeline)
    source = job.source()
    evolution = ingest.plan_schema(source, job.table, hudi.stored_schema(job.spark, job.table))
    with ingest.folder(job) as uri:
        reading = source.changes(checkpoint.position, upto=job.spec.upto_at)
        batch = ingest.staged(job, reading, evolution, uri)
        if reading.unchanged() or not batch.read:
            return _nothing_new(job, checkpoint, batch, evolution)
        plan = ingest.Plan("upsert", evolution, stored=True, position=batch.position, before=checkpoint.position)
        return ingest.commit(job, batch, plan)


def known_checkpoint(timeline: Timeline) -> Checkpoint:
    checkpoint = timeline.checkpoint()
    if checkpoint is None:
        raise JobError(
            f"The table at {timeline.uri} has no commit that carries a checkpoint: it was not loaded by a bootstrap, or that one is too long ago. "
            "Bootstrap it (with `replace` where it has rows)."
        )
    return checkpoint


def _nothing_new(job: Job, checkpoint: Checkpoint, batch: staging.Staged, evolution: Evolution) -> JobReport:
    """No commit, unless other writers' commits are about to push the checkpoint into the archive."""
    if due_for_stamping(checkpoint, commits_kept=hudi.COMMITS_KEPT):
        empty = staging.Staged(batch.uri, batch.schema)
        return ingest.commit(job, empty, ingest.Plan("upsert", evolution, stored=True, position=checkpoint.position))
    return job.nothing_to_do(
        instant=checkpoint.instant, checkpoint=dict(checkpoint.position), schema=ingest.facts_of(evolution)
    )
