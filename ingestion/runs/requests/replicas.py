"""What a replica is told and refused, and what its source is told."""

from __future__ import annotations

import logging
from datetime import datetime

from ingestion.lake import readers
from ingestion.models import JobKind, Replica
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import ReplicationSpec
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Refused

logger = logging.getLogger(__name__)
_KINDS_OF_REPLICA = (JobKind.REPLICATE, JobKind.DROP)


def replica_of(copy: DatasetCopy) -> Replica | None:
    """None: it is not replicated. One query."""
    return Replica.objects.select_related("source__data_center", "source__dataset").filter(copy=copy).first()


def check_replica(copy: DatasetCopy, kind: str) -> None:
    """Raises Refused for a job that would write a replica otherwise than its source is, and for the replication of a copy that is none."""
    replica = replica_of(copy)
    if replica is None and kind == JobKind.REPLICATE:
        raise Refused(
            f"{copy} is not replicated, so there is nothing to replicate it from. Say from which copy: "
            f"`manage.py replicate {copy.dataset.name} --to {copy.data_center} --from DATA_CENTER`."
        )
    if replica is not None and kind not in _KINDS_OF_REPLICA:
        raise Refused(
            f"{copy} is replicated from {replica.source.data_center}, so it has no job `{kind}` of its own: what it wrote would be lost. "
            f"Ask for the {kind} in {replica.source.data_center}, or end the replication first."
        )


def replication_spec(copy: DatasetCopy) -> ReplicationSpec:
    """Raises Refused where the source is gone."""
    replica = replica_of(copy)
    assert replica is not None  # check_replica has looked
    if replica.source.removed_at is not None:
        raise Refused(
            f"{copy} is replicated from {replica.source.data_center}, where its dataset has no copy any more. Restore that copy, or end the replication."
        )
    return ReplicationSpec(replica.source.uri, None if replica.mib_per_s is None else float(replica.mib_per_s))


def note_replicated(copy: DatasetCopy, report: JobReport, *, now: datetime) -> None:
    """The source keeps files that the replica has not copied yet, as for any reader of its increments."""
    replica, completed = replica_of(copy), report.output.get("replication", {}).get("completed")
    if replica is None or not completed:
        return
    try:
        readers.note_position(replica.source, reader_name(copy), completed, actor="ingestion", now=now)
    except Refused as problem:
        # Without it the replica goes on, and is made anew where files are cleaned away before they are copied.
        logger.warning("%s is not told how far its replica %s is: %s", replica.source, copy, problem)


def reader_name(copy: DatasetCopy) -> str:
    return f"replica in {copy.data_center}"
