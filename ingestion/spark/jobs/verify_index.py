"""Does the index know where each key lies, and has the table each key once? Nothing is changed; what was found is the report's output.

Others may write meanwhile, and then it is compared again: at last within the permit, which keeps them off for that long.
"""

from __future__ import annotations

from contextlib import nullcontext

from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.file_groups.index_check import IndexCheck, check_entries
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job
from ingestion.spark.loading import write_path
from ingestion.spark.tables import hudi
from ingestion.spark.write_permit import hold_write_permit

_MAX_READINGS = 3


def run(job: Job) -> JobReport:
    timeline = hudi.check_table(job.table)
    for number in range(1, _MAX_READINGS + 1):
        with hold_write_permit(job) if number == _MAX_READINGS else nullcontext():
            before = timeline.latest_completion()
            check = _compare(job)
            if timeline.latest_completion() == before:
                break
        job.check_deadline()
    return JobReport(run_id=job.spec.run_id, status=SUCCEEDED, output=check.output())


def _compare(job: Job) -> IndexCheck:
    index: Index = INDEXES.get(job.table.index)()
    with job.phase("verify"), write_path.staging_folder(job) as folder:
        entries = index.entries(job.spark, job.table, f"{folder}/rows")
        rows = hudi.read_table(job.spark, job.table, by_listing=True)
        return check_entries(job.table.index, rows, entries)
