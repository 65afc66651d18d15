"""Given partitions read from the source again and upserted. The latest checkpoint is carried forward, so that incremental jobs go on where they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingestion.spark.contract.report import JobReport
from ingestion.spark.job import Job
from ingestion.spark.loading import write_path
from ingestion.spark.tables import hudi
from lakehub.kernel.partitions import parse_partition_name


def run(job: Job) -> JobReport:
    timeline = hudi.check_table(job.table)
    if done := job.report_of_earlier_attempt(timeline):
        return done
    checkpoint = job.require_checkpoint(timeline)
    source = job.open_source()
    evolution = write_path.plan_schema(source, job.table, hudi.stored_schema(job.spark, job.table))
    only = _source_filter(job)
    with write_path.staging_folder(job) as uri:
        batch = write_path.stage_reading(
            job, source.snapshot(upto=job.spec.upto_at, only=only), evolution, uri, job.spec.partitions
        )
        if not batch.read:
            return job.nothing_to_do_report(instant=checkpoint.instant, checkpoint=dict(checkpoint.position))
        at = checkpoint.position
        return write_path.commit_batch(
            job,
            batch,
            write_path.CommitPlan("upsert", evolution, has_stored_rows=True, position=at, previous_position=at),
        )


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
