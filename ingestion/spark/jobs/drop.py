"""A copy leaves the lake, with its error table. First renamed, so that no reader finds half a table; then removed."""

from __future__ import annotations

from pyarrow import fs

from ingestion.spark.job import Job
from ingestion.spark.report import SUCCEEDED, JobReport
from ingestion.spark.tables.hudi import remove
from ingestion.spark.tables.timeline import Timeline, storage


def run(job: Job) -> JobReport:
    timeline = Timeline(job.table.uri)
    there = timeline.exists
    with job.phase("drop"):
        if there:
            _remove_whole(job.table.uri)
        if Timeline(job.table.error_uri).exists:
            _remove_whole(job.table.error_uri)
    return JobReport(run_id=job.spec.run_id, status=SUCCEEDED) if there else job.nothing_to_do()


def _remove_whole(uri: str) -> None:
    parent, _, name = uri.rstrip("/").rpartition("/")
    grave = f"{parent}/.lakehub/dropped/{name}"
    remove(grave)
    filesystem, path = storage(uri)
    target = storage(grave)[1]
    filesystem.create_dir(target.rpartition("/")[0])
    if filesystem.get_file_info(path).type != fs.FileType.NotFound:
        filesystem.move(path, target)
    remove(grave)
