"""The table of HBase goes that a copy's Global Index had, when its jobs look keys up in another index. The copy's own table stays as it is."""

from __future__ import annotations

from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.job import Job
from ingestion.spark.write_permit import hold_write_permit


def run(job: Job) -> JobReport:
    if job.table.global_index is None:  # the cluster is gone, and all tables with it
        return job.nothing_to_do_report()
    from ingestion.spark.global_index import building  # what it needs is loaded by tables that have such an index

    with hold_write_permit(job), job.phase("drop"):
        building.drop(job.spark, job.table, job.table.global_index)
    return JobReport(run_id=job.spec.run_id, status=SUCCEEDED, output={"index": "hbase"})
