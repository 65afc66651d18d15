"""How far the replicas of a dataset are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ingestion.models import Commit, JobKind, JobRun, JobState, Replica
from lakehub.catalog.models import Dataset

MAX_PENDING = 1000
CHECKSUM_ERROR = "ChecksumMismatch"
"""How the error of a run begins that has stored a file otherwise than it was read (`ingestion.spark.replication.copying`)."""


@dataclass(frozen=True)
class ReplicaState:
    """`instant`: of the newest commit of the source that the replica was equal to when its last run ended; empty: none yet.

    `pending`: commits of the source that came after that one, MAX_PENDING + 1 for more; None: it is not known any more which those are. `waits_since`: when the first of
    them was completed. `copied_files`, `copied_bytes`, `copied_at`: of the newest run that has copied any. `failed_run`: the newest run, where it was given up or is tried again.
    """

    data_center: str
    replicated_from: str
    mib_per_s: int | None
    instant: str
    is_equal: bool
    replicated_at: datetime | None
    resync: str
    error: str
    pending: int | None = None
    waits_since: datetime | None = None
    copied_files: int = 0
    copied_bytes: int = 0
    copied_at: datetime | None = None
    failed_run: int | None = None

    @property
    def has_more(self) -> bool:
        return self.pending is not None and self.pending > MAX_PENDING

    @property
    def checksums_differ(self) -> bool:
        return CHECKSUM_ERROR in self.error


def replica_states(dataset: Dataset) -> list[ReplicaState]:
    """One query, and eight for each at most."""
    replicas = Replica.objects.filter(copy__dataset=dataset, copy__removed_at=None)
    related = replicas.select_related("copy__data_center", "source__data_center")
    return [_state_of(replica) for replica in related.order_by("copy__data_center__name")]


def _state_of(replica: Replica) -> ReplicaState:
    runs = JobRun.objects.filter(copy=replica.copy, kind=JobKind.REPLICATE).order_by("-pk")
    newest, last = runs.first(), runs.filter(state=JobState.SUCCEEDED).first()
    copied = runs.filter(state=JobState.SUCCEEDED, report__output__replication__files__gt=0).first()
    facts, copied_facts = _facts(last), _facts(copied)
    instant = facts.get("instant", "")
    pending, waits_since = _pending(replica, instant)
    error = newest.error if newest else ""
    return ReplicaState(
        replica.copy.data_center.name,
        replica.source.data_center.name,
        replica.mib_per_s,
        instant,
        bool(instant) and pending == 0,
        None if last is None else last.ended_at,
        facts.get("resync", ""),
        error,
        pending,
        waits_since,
        copied_facts.get("files", 0),
        copied_facts.get("bytes", 0),
        None if copied is None else copied.ended_at,
        newest.pk if newest and error else None,
    )


def _facts(run: JobRun | None) -> dict[str, Any]:
    return run.report.get("output", {}).get("replication", {}) if run else {}


def _pending(replica: Replica, instant: str) -> tuple[int | None, datetime | None]:
    """Of the commits that are known of the source: all, where none was replicated yet."""
    commits = Commit.objects.filter(copy=replica.source).order_by("completed_at")
    if instant:
        equal_to = commits.filter(instant=instant).first()
        if equal_to is None:
            return None, None
        commits = commits.filter(completed_at__gt=equal_to.completed_at)
    times = list(commits.values_list("completed_at", flat=True)[: MAX_PENDING + 1])
    return len(times), times[0] if times else None
