"""How far the replicas of a dataset are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ingestion.models import Commit, JobKind, JobRun, JobState, Replica
from lakehub.catalog.models import Dataset


@dataclass(frozen=True)
class ReplicaState:
    """`instant`: of the newest commit of the source that the replica was equal to when its last run ended; empty: none yet."""

    data_center: str
    replicated_from: str
    mib_per_s: int | None
    instant: str
    is_equal: bool
    replicated_at: datetime | None
    resync: str
    error: str


def replica_states(dataset: Dataset) -> list[ReplicaState]:
    replicas = Replica.objects.filter(copy__dataset=dataset, copy__removed_at=None)
    related = replicas.select_related("copy__data_center", "source__data_center")
    return [_state_of(replica) for replica in related.order_by("copy__data_center__name")]


def _state_of(replica: Replica) -> ReplicaState:
    runs = JobRun.objects.filter(copy=replica.copy, kind=JobKind.REPLICATE).order_by("-pk")
    newest, last = runs.first(), runs.filter(state=JobState.SUCCEEDED).first()
    facts: dict[str, Any] = last.report.get("output", {}).get("replication", {}) if last else {}
    instant = facts.get("instant", "")
    known = Commit.objects.filter(copy=replica.source).order_by("-completed_at").values_list("instant", flat=True)
    return ReplicaState(
        replica.copy.data_center.name,
        replica.source.data_center.name,
        replica.mib_per_s,
        instant,
        bool(instant) and known.first() == instant,
        None if last is None else last.ended_at,
        facts.get("resync", ""),
        newest.error if newest else "",
    )
