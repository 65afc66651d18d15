"""A copy leaves the lake, with its error table, its tombstones, its history, its raw chunks, its Global Index, and rows that were refused. First renamed, so that no reader finds half a table; then removed."""

from __future__ import annotations

from pyarrow import fs

from ingestion.spark.contract.report import SUCCEEDED, JobReport
from ingestion.spark.job import Job, refused_folder
from ingestion.spark.loading.staging import remove_rows
from ingestion.spark.replication.replicating import BUILDING
from ingestion.spark.replication.table_folder import TableFolder
from ingestion.spark.tables.hudi import remove_table
from ingestion.spark.tables.timeline import Timeline, open_storage


def run(job: Job) -> JobReport:
    timeline = Timeline(job.table.uri)
    there = timeline.exists
    with job.phase("drop"):
        if there:
            _rename_and_remove(job.table.uri)
        for beside in job.table.uris_beside:
            if Timeline(beside).exists:
                _rename_and_remove(beside)
        remove_rows(refused_folder(job.table.uri))
        if job.raw_folder is not None:
            job.raw_folder.remove()
        remove_table(TableFolder(job.table.uri).beside(BUILDING).uri)
        if job.table.global_index is not None:
            _drop_index(job)
    return JobReport(run_id=job.spec.run_id, status=SUCCEEDED) if there else job.nothing_to_do_report()


def _drop_index(job: Job) -> None:
    from ingestion.spark.global_index import building  # what it needs is loaded by tables that have such an index

    assert job.table.global_index is not None
    building.drop(job.spark, job.table, job.table.global_index)


def _rename_and_remove(uri: str) -> None:
    parent, _, name = uri.rstrip("/").rpartition("/")
    grave = f"{parent}/.lakehub/dropped/{name}"
    remove_table(grave)
    filesystem, path = open_storage(uri)
    target = open_storage(grave)[1]
    filesystem.create_dir(target.rpartition("/")[0])
    if filesystem.get_file_info(path).type != fs.FileType.NotFound:
        filesystem.move(path, target)
    remove_table(grave)
