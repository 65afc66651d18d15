"""Does the index know where each key lies, and has the table each key once? What was found is the report's output.

Others may write meanwhile, and then it is compared again: at last within the permit, which keeps them off for that long. Nothing is changed, unless the job
is to put the index right where it is wrong: then, within the permit, those keys are, and all keys are compared after that.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any

from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.file_groups.index_check import ALL_KEYS, IndexCheck, KeySample, Repair, check_entries
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job
from ingestion.spark.loading import write_path
from ingestion.spark.tables import hudi
from ingestion.spark.write_permit import hold_write_permit

_MAX_READINGS = 3


def run(job: Job) -> JobReport:
    hudi.check_table(job.table)
    index: Index = INDEXES.get(job.table.index)()
    sample = KeySample(job.spec.verify.share, job.spec.run_id)
    check = _compare_beside_others(job, index, sample)
    output = check.output()
    if job.spec.verify.repairs:
        output = _repair(job, index, sample) if check.repairable else output | {"repaired": {}}
    return JobReport(run_id=job.spec.run_id, status=SUCCEEDED, output=output)


def _compare_beside_others(job: Job, index: Index, sample: KeySample) -> IndexCheck:
    timeline = hudi.check_table(job.table)
    for number in range(1, _MAX_READINGS + 1):
        with hold_write_permit(job) if number == _MAX_READINGS else nullcontext():
            before = timeline.latest_completion()
            check = _compare(job, index, sample)
            if timeline.latest_completion() == before:
                break
        job.check_deadline()
    return check


def _repair(job: Job, index: Index, sample: KeySample) -> dict[str, Any]:
    """The comparison of all keys after the repair, and what was `repaired`: keys by problem."""
    with hold_write_permit(job):
        wrong = _compare(job, index, sample, partial(index.repair, job.spark, job.table))
        job.check_deadline()
        return _compare(job, index, ALL_KEYS).output() | {"repaired": wrong.repairable}


def _compare(job: Job, index: Index, sample: KeySample, repair: Repair | None = None) -> IndexCheck:
    with job.phase("verify"), write_path.staging_folder(job) as folder:
        entries = index.entries(job.spark, job.table, f"{folder}/rows")
        rows = hudi.read_table(job.spark, job.table, by_listing=True)
        return check_entries(job.table.index, rows, entries, sample, repair)
