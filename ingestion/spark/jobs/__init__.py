"""The kinds of job. To add one: a module with `run(job: Job) -> JobReport`, a line here, a test in tests/spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from lakehub.kernel.registry import Registry

if TYPE_CHECKING:
    from ingestion.spark.contract.report import JobReport
    from ingestion.spark.job import Job


class RunJob(Protocol):
    def __call__(self, job: Job) -> JobReport: ...


JOBS: Registry[RunJob] = Registry(
    "job",
    {
        "bootstrap": "ingestion.spark.jobs.bootstrap:run",
        "incremental": "ingestion.spark.jobs.incremental:run",
        "backfill": "ingestion.spark.jobs.backfill:run",
        "delete": "ingestion.spark.jobs.delete:run",
        "replay": "ingestion.spark.jobs.replay:run",
        "cluster": "ingestion.spark.jobs.cluster:run",
        "set_position": "ingestion.spark.jobs.set_position:run",
        "drop": "ingestion.spark.jobs.drop:run",
        "verify_index": "ingestion.spark.jobs.verify_index:run",
        "rebuild_index": "ingestion.spark.jobs.rebuild_index:run",
        "drop_index": "ingestion.spark.jobs.drop_index:run",
        "lineage": "ingestion.spark.jobs.lineage:run",
        "replicate": "ingestion.spark.replication.job:run",
    },
)
