"""Makes a copy that is replicated equal to the one that it is made from. It runs within the permit as a whole: nobody else has anything to write there.

A run that was killed is gone on with by what lies there. One whose time is up before everything is copied is unfinished, and goes on.
"""

from __future__ import annotations

from dataclasses import asdict

from ingestion.domain.pace import Pace
from ingestion.spark.contract.report import NOTHING_TO_DO, SUCCEEDED, UNFINISHED, JobReport
from ingestion.spark.contract.spec import ReplicationSpec
from ingestion.spark.job import DeadlinePassed, Job
from ingestion.spark.replication.copying import Bandwidth
from ingestion.spark.replication.replicating import Replication
from ingestion.spark.replication.table_folder import TableFolder
from ingestion.spark.tables.timeline import instant_to_datetime
from ingestion.spark.write_permit import hold_write_permit

_MIB = 2**20


def run(job: Job) -> JobReport:
    """Raises SourceMoves, NotReplicable, NotATable, ChecksumMismatch, FolderNotRenamed, DeadlinePassed."""
    given = job.spec.replication
    assert isinstance(given, ReplicationSpec)  # the spec has checked it
    pace = None if given.mib_per_s is None else Pace(given.mib_per_s * _MIB)
    bandwidth = Bandwidth(job.check_deadline, pace)
    grace_s = job.table.retention_hours * 3600.0
    replication = Replication(TableFolder(given.source_uri), TableFolder(job.table.uri), bandwidth, grace_s)
    with hold_write_permit(job), job.phase("replicate"):
        try:
            replication.run()
        except DeadlinePassed:
            if not replication.done.files:
                raise
            return _report(job, replication, UNFINISHED)
    return _report(job, replication, SUCCEEDED if replication.done.has_changed else NOTHING_TO_DO)


def _report(job: Job, replication: Replication, status: str) -> JobReport:
    done = replication.done
    return JobReport(
        run_id=job.spec.run_id,
        status=status,
        instant=done.instant or None,
        completed_at=instant_to_datetime(done.completed).isoformat() if done.completed else None,
        output={"replication": asdict(done) | {"source": replication.source.uri}},
        has_more=status == UNFINISHED,
    )
