"""What the index keeps beside the table is made anew from the base files. The table and its checkpoint stay as they are; how long others wait for it, the index says."""

from __future__ import annotations

from functools import partial

from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job
from ingestion.spark.tables import hudi
from ingestion.spark.write_permit import hold_write_permit


def run(job: Job) -> JobReport:
    hudi.check_table(job.table)
    index: Index = INDEXES.get(job.table.index)()
    with job.phase("index"):
        index.rebuild(job.spark, job.table, partial(hold_write_permit, job))
    return JobReport(run_id=job.spec.run_id, status=SUCCEEDED, output={"index": job.table.index})
