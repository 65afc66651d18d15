"""The source was emptied as a whole: rows of the table that it had by then are deleted, and those that came since stand.

One commit, which carries that it is done: it is there as a whole, or not at all, and is made once.
"""

from __future__ import annotations

from pyspark.sql import functions as F

from ingestion.domain.merging.stored_metadata import METADATA_COLUMN
from ingestion.sources import EmptiedTable, LogReading
from ingestion.spark.file_groups.record_locations import PREPPED, with_locations
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job
from ingestion.spark.loading.rereading import ReadAgain, ReadingStart
from ingestion.spark.tables import hudi
from ingestion.spark.tables.checkpoint_metadata import commit_metadata
from ingestion.spark.tables.timeline import Timeline
from ingestion.spark.write_permit import hold_write_permit
from lakehub.kernel import failpoint


def delete_emptied(job: Job, start: ReadingStart, reading: LogReading) -> None:
    """Raises ReadAgain: the table has other rows, and another checkpoint, after it."""
    with hold_write_permit(job):
        latest = Timeline(job.table.uri).checkpoint()
        if latest is not None and latest.position == start.checkpoint.position:
            job.check_deadline()
            _delete(job, start, reading.emptied)
            failpoint.reach("ingestion.after_emptying")
    raise ReadAgain("the table of its source was emptied, and its rows are deleted now")


def _delete(job: Job, start: ReadingStart, emptied: EmptiedTable) -> None:
    """Of a row its newest change decides, of whichever column."""
    table = job.table
    index: Index = INDEXES.get(table.index)()
    options = index.write_options(table)
    marks = commit_metadata(run={"run_id": "", "kind": "emptied"}, checkpoint=emptied.position)
    rows = hudi.read_table(job.spark, table)
    before = rows.where(F.col(METADATA_COLUMN)["reference_key"] < F.lit(bytearray(emptied.before)))
    with job.phase("write"):
        if before.isEmpty():
            hudi.write_commit(hudi.empty_frame(job.spark, start.stored), table, "upsert", options, marks)
        else:
            hudi.write_commit(with_locations(before, table), table, "delete", {**options, **PREPPED}, marks)
