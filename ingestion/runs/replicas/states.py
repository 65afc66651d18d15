"""How far replicas are. Asked of our own records, never of the lake, and by as many queries for one as for all."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce

from ingestion.models import Commit, JobKind, JobRun, JobState, Replica
from lakehub.catalog.models import Dataset, DatasetCopy

MAX_PENDING = 1000
MAX_RUNS_READ = 1000
"""So many of the newest runs are looked at for one that has copied files: 41 days, where there is one every hour."""
CHECKSUM_ERROR = "ChecksumMismatch"
"""How the error of a run begins that has stored a file otherwise than it was read (`ingestion.spark.replication.copying`)."""
_FACTS = "report__output__replication__"
_MAKE_OR_EMPTY = (JobKind.REPLICATE, JobKind.BOOTSTRAP, JobKind.DROP)
"""The newest of these that has succeeded says whether the table is a replica: a copy that was fed meanwhile, or dropped, begins anew."""


@dataclass(frozen=True)
class ReplicaState:
    """`instant`: of the newest commit of the source that the replica was equal to when its last run ended; empty: none yet.

    `pending`: commits of the source that came after that one, MAX_PENDING + 1 for more; None: it is not known any more which those are. `waits_since`: since when the first of
    them waits. `copied_files`, `copied_bytes`, `copied_at`: of the newest run that has copied any. `failed_run`: the newest run, where it was given up or is tried again.
    """

    replica: Replica
    instant: str = ""
    replicated_at: datetime | None = None
    resync: str = ""
    error: str = ""
    pending: int | None = None
    waits_since: datetime | None = None
    copied_files: int = 0
    copied_bytes: int = 0
    copied_at: datetime | None = None
    failed_run: int | None = None

    @property
    def copy(self) -> DatasetCopy:
        return self.replica.copy

    @property
    def data_center(self) -> str:
        return self.replica.copy.data_center.name

    @property
    def replicated_from(self) -> str:
        return self.replica.source.data_center.name

    @property
    def mib_per_s(self) -> int | None:
        return self.replica.mib_per_s

    @property
    def is_equal(self) -> bool:
        return bool(self.instant) and self.pending == 0

    @property
    def has_source(self) -> bool:
        return self.replica.source.removed_at is None

    @property
    def has_more(self) -> bool:
        return self.pending is not None and self.pending > MAX_PENDING

    @property
    def checksums_differ(self) -> bool:
        return CHECKSUM_ERROR in self.error

    def lag(self, *, now: datetime) -> timedelta:
        """For how long the first commit waits. Where nobody knows which those are, or the source is gone: for how long no run has succeeded."""
        since = self.waits_since
        if since is None and (self.pending is None or not self.has_source):
            since = self.replicated_at or self.replica.asked_at
        return timedelta() if since is None else max(timedelta(), now - since)


def replica_states(dataset: Dataset) -> list[ReplicaState]:
    """Of its copies that are replicated, by data center. Five queries at most."""
    replicas = live_replicas().filter(copy__dataset=dataset).order_by("copy__data_center__name")
    states, copied = states_of(replicas), _copied_last(replicas)
    return [replace(state, **copied.get(state.replica.pk, {})) for state in states]


def live_replicas() -> QuerySet[Replica]:
    live = Replica.objects.filter(copy__removed_at=None, copy__rebuild=None)
    return live.filter(copy__dataset__ingested=True, copy__dataset__offboarded_at=None)


def states_of(replicas: QuerySet[Replica]) -> list[ReplicaState]:
    """In their order, without what was copied last. Four queries at most, however many there are."""
    related = replicas.select_related("copy__dataset", "copy__data_center", "source__data_center")
    # One for each kind: asked for several at once, SQLite would look through the runs of all copies.
    succeeded = {f"newest_{kind}": _newest(kind=kind, state=JobState.SUCCEEDED) for kind in _MAKE_OR_EMPTY}
    rows = [*related.annotate(newest=_newest(kind=JobKind.REPLICATE), **succeeded)]
    made_by = {replica.pk: max(getattr(replica, name) or 0 for name in succeeded) for replica in rows}
    runs = _runs({number for replica in rows for number in (replica.newest, made_by[replica.pk]) if number})
    replicated = {run.copy_id for number in made_by.values() if (run := runs.get(number)) is not None and run.instant}
    waiting = _waiting_after([made_by[pk] for pk in replicated])
    waiting |= _waiting_from_first(made_by.keys() - replicated)
    return [
        _state_of(replica, runs.get(replica.newest), runs.get(made_by[replica.pk]), waiting.get(replica.pk, _NOTHING))
        for replica in rows
    ]


def _state_of(replica: Replica, newest: Any, made_by: Any, waiting: _Waiting) -> ReplicaState:
    error = newest.error if newest else ""
    state = ReplicaState(replica, error=error, failed_run=newest.pk if newest and error else None)
    if made_by is None or not made_by.instant:
        times = (waiting.since, replica.asked_at, made_by and made_by.ended_at)
        since = waiting.since and max(time for time in times if time is not None)
        return replace(state, pending=waiting.pending, waits_since=since)
    state = replace(state, instant=made_by.instant, replicated_at=made_by.ended_at, resync=made_by.resync or "")
    return state if made_by.equal_at is None else replace(state, pending=waiting.pending, waits_since=waiting.since)


def _newest(**facts: Any) -> Subquery:
    """The number of the newest of these runs of a replica."""
    return Subquery(JobRun.objects.filter(copy=OuterRef("copy"), **facts).order_by("-pk").values("pk")[:1])


def _runs(numbers: Collection[int]) -> dict[int, Any]:
    """With what a replication has reported, and when the commit of the source was completed that the replica is equal to since."""
    runs = JobRun.objects.filter(pk__in=numbers).only("copy_id", "kind", "error", "ended_at")
    runs = runs.annotate(instant=KT(f"{_FACTS}instant"), resync=KT(f"{_FACTS}resync")).annotate(equal_at=_EQUAL_AT)
    return {run.pk: run for run in runs}


_EQUAL_AT = Subquery(
    Commit.objects.filter(copy=OuterRef("copy__replica__source"), instant=OuterRef("instant")).values("completed_at")[
        :1
    ]
)


class _Waiting(NamedTuple):
    """Of a replica: how many commits wait, and since when the first."""

    pending: int = 0
    since: datetime | None = None


_NOTHING = _Waiting()
"""Also of one that has ended meanwhile."""


class _Count(Subquery):
    """Of the rows of a query that has a limit."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) limited)"
    output_field = IntegerField()


def _waiting_after(runs: Collection[int]) -> dict[int, _Waiting]:
    """By replica what its run has not replicated. Commits that were completed before it began and are not in the replica were taken back by the source."""
    rows = JobRun.objects.filter(pk__in=runs).annotate(instant=KT(f"{_FACTS}instant")).annotate(equal_at=_EQUAL_AT)
    of_source = Commit.objects.filter(copy=OuterRef("copy__replica__source"), completed_at__gte=OuterRef("started_at"))
    return _counted(rows, "copy", of_source.filter(completed_at__gt=OuterRef("equal_at")))


def _waiting_from_first(replicas: Collection[int]) -> dict[int, _Waiting]:
    """By replica: of the commits that are known of its source all."""
    return _counted(Replica.objects.filter(pk__in=replicas), "pk", Commit.objects.filter(copy=OuterRef("source")))


def _counted(rows: QuerySet[Any], replica: str, waiting: QuerySet[Commit]) -> dict[int, _Waiting]:
    limited, first = (
        waiting.values("pk")[: MAX_PENDING + 1],
        waiting.order_by("completed_at").values("completed_at")[:1],
    )
    counted = rows.annotate(pending=_Count(limited), since=Subquery(first))
    return {pk: _Waiting(pending, since) for pk, pending, since in counted.values_list(replica, "pending", "since")}


def _copied_last(replicas: QuerySet[Replica]) -> dict[int, dict[str, Any]]:
    """By replica, fields of its state."""
    of_replica = JobRun.objects.filter(kind=JobKind.REPLICATE).order_by("-pk")
    nth = of_replica.filter(copy=OuterRef(OuterRef("copy"))).values("pk")[MAX_RUNS_READ - 1 : MAX_RUNS_READ]
    recent = of_replica.filter(copy=OuterRef("copy"), pk__gte=Coalesce(Subquery(nth), 0), state=JobState.SUCCEEDED)
    copying = recent.filter(**{f"{_FACTS}files__gt": 0}).values("pk")[:1]
    runs = JobRun.objects.filter(pk__in=replicas.order_by().values(copying=Subquery(copying)))
    facts = runs.values_list("copy", "ended_at", f"{_FACTS}files", f"{_FACTS}bytes")
    return {
        copy: {"copied_at": ended_at, "copied_files": files, "copied_bytes": size}
        for copy, ended_at, files, size in facts
    }
