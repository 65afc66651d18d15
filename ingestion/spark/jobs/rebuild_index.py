"""What the index keeps beside the table is made anew from the base files. Others wait meanwhile; the table and its checkpoint stay as they are."""

from __future__ import annotations

from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job
from ingestion.spark.tables import hudi
from ingestion.spark.write_permit import hold_write_permit


def run(job: Job) -> JobReport:
    hudi.check_table(job.table)
    index: Index = INDEXES.get(job.table.index)()
    with hold_write_permit(job), job.phase("index"):
        index.rebuild(job.spark, job.table)
    return JobReport(run_id=job.spec.run_id, status=SUCCEEDED, output={"index": job.table.index})
