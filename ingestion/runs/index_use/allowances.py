"""The part of an index cluster that a job may use: jobs of a dataset split its fraction, and none takes what another still uses.

A job begins with its whole part, or waits until there is room: whoever works learns of it at its next renewal, and gives back what is above its own part
with the one after, when its job has slowed down. So at no time more is counted than the cluster has, also while fractions change. A job that dies renews
nothing, and its part is free when its lease runs out; on the same host as soon as its process is seen to be gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from django.db.models import Q, QuerySet, Sum
from django.db.models.functions import Now

from ingestion.domain.index_cluster.fractions import WHOLE, as_percent
from ingestion.index_shares.shares import HBASE, is_in_cluster, locked, recompute
from ingestion.models import IndexAllowance, IndexCluster, IndexShare, JobKind, JobRun, JobState
from ingestion.runs.leases import LEASE_DURATION, lease_end
from lakehub.kernel.errors import Refused

RETRY_AFTER = timedelta(seconds=5)
UNPACED_KINDS = (JobKind.BOOTSTRAP, JobKind.REBUILD_INDEX, JobKind.DROP, JobKind.SET_POSITION)
"""They load whole files of entries into the cluster, drop the table there, or leave it alone: no request is sent for a key."""
_AT_WORK = (JobState.QUEUED, JobState.RUNNING)
_MARGIN_S = 5.0
"""Between the moment up to which a job uses what it has not been able to renew, and the one at which others may take it: it is told a few seconds late."""


@dataclass(frozen=True)
class NoRoom:
    """Others use the cluster up until they have slowed down. To be asked again after RETRY_AFTER."""

    why: str


@dataclass
class Allowance:
    """What a job holds. `renew` it every quarter of LEASE_DURATION from a thread beside the job, tell the job what `parts` says then, `release` it at the end."""

    run: JobRun
    worker: str
    cluster: IndexCluster
    told: int
    clock: Callable[[], float] = time.monotonic
    _renewed_at: float = field(default=0.0, init=False)

    @property
    def parts(self) -> int:
        """Of WHOLE, that the job may use now. 0: it was lost, or could not be renewed for as long as it lasts: the job sends nothing."""
        lasts = LEASE_DURATION.total_seconds() - _MARGIN_S
        return self.told if self.clock() < self._renewed_at + lasts else 0

    def renew(self) -> bool:
        """False: it was lost. Raises the database's errors, after which `parts` holds until the lease would run out."""
        asked_at = self.clock()
        with locked(self.cluster):
            _drop_lapsed(self.cluster)
            own = _own(self.run, self.worker).select_related("share").first()
            told = 0 if own is None else _next_part(self.cluster, own)
            if own is not None:
                # What it was told before counts until the next renewal: so long it may take the job to slow down.
                taken = {"told_fraction": told, "fraction": max(own.told_fraction, told)}
                _own(self.run, self.worker).update(**taken, leased_until=lease_end(LEASE_DURATION))
                self.cluster.refresh_from_db()
        self.told, self._renewed_at = told, asked_at
        return told > 0

    def release(self) -> None:
        release(self.run, self.worker)


def needs_allowance(run: JobRun) -> bool:
    return run.kind not in UNPACED_KINDS and is_in_cluster(run.copy)


def take(run: JobRun, worker: str, *, clock: Callable[[], float] = time.monotonic) -> Allowance | NoRoom | None:
    """None: its jobs send no requests to a cluster. Whoever has no room keeps its place among the jobs that split the fraction, while it asks again.

    Raises Refused where the data center of the copy has no cluster, or one that was not benchmarked.
    """
    if not needs_allowance(run):
        return None
    asked_at = clock()
    cluster = _cluster_of(run)
    with locked(cluster):
        _drop_lapsed(cluster)
        share = _share_of(run, cluster)
        if not _has_place(run, share, worker):
            return NoRoom(f"waits for the index cluster `{cluster}`: another worker holds the part of this run")
        part = share.fraction // share.allowances.count()
        room = _room(cluster, run, share)
        if not 0 < part <= room:
            return _no_room(cluster, part, room)
        _own(run, worker).update(fraction=part, told_fraction=part)
    allowance = Allowance(run, worker, cluster, part, clock)
    allowance._renewed_at = asked_at
    return allowance


def release(run: JobRun, worker: str) -> None:
    """Also where it has none, or waits no more."""
    _own(run, worker).delete()


def _cluster_of(run: JobRun) -> IndexCluster:
    center = run.copy.data_center
    cluster = IndexCluster.objects.filter(data_center=center).first()
    if cluster is None:
        raise Refused(
            f"The index of `{run.copy.dataset.name}` is `{HBASE}`, and the data center {center} has no index cluster. Add it with "
            f"`manage.py index_clusters add NAME --data-center {center}`, or choose another index for the dataset."
        )
    if cluster.qps_per_server is None:
        raise Refused(
            f"The index cluster `{cluster}` was not benchmarked, so it is not known how many requests a second its servers answer. "
            f"Set it with `manage.py index_clusters set-qps {cluster} QPS`."
        )
    return cluster


def _share_of(run: JobRun, cluster: IndexCluster) -> IndexShare:
    """It is made here where the dataset has just come."""
    share = IndexShare.objects.filter(copy=run.copy_id).first()
    if share is None or share.fraction == 0:
        recompute(cluster)
        share = IndexShare.objects.filter(copy=run.copy_id).first()
    if share is None:
        raise Refused(f"`{run.copy}` was taken from the index cluster `{cluster}` before its job began.")
    return share


def _has_place(run: JobRun, share: IndexShare, worker: str) -> bool:
    """Among the jobs that split the fraction. False: another worker is still counted for this run, with what its job may still send."""
    lease = {"leased_by": worker, "leased_until": lease_end(LEASE_DURATION)}
    IndexAllowance.objects.get_or_create(run=run, defaults={"share": share, **lease})
    is_own = Q(leased_by=worker) | Q(fraction=0)
    return bool(IndexAllowance.objects.filter(is_own, run=run).update(share=share, **lease))


def _next_part(cluster: IndexCluster, own: IndexAllowance) -> int:
    """What a job that works is told: less at once, more as far as there is room."""
    before, part = own.told_fraction, own.share.fraction // own.share.allowances.count()
    return part if part <= before else max(before, min(part, _room(cluster, own.run, own.share)))


def _room(cluster: IndexCluster, run: JobRun, share: IndexShare) -> int:
    """What the others leave of the share, and of the cluster: while fractions change, jobs of other datasets may still have more than theirs."""
    others = IndexAllowance.objects.filter(share__cluster=cluster).exclude(run=run)
    return min(share.fraction - _counted(others.filter(share=share)), WHOLE - _counted(others))


def _counted(allowances: QuerySet[IndexAllowance]) -> int:
    return int(allowances.aggregate(parts=Sum("fraction", default=0))["parts"])


def _drop_lapsed(cluster: IndexCluster) -> None:
    """Those whose lease ran out, and those of runs that are over."""
    is_lapsed = Q(leased_until__lt=Now()) | ~Q(run__state__in=_AT_WORK)
    IndexAllowance.objects.filter(is_lapsed, share__cluster=cluster).delete()


def _own(run: JobRun, worker: str) -> QuerySet[IndexAllowance]:
    return IndexAllowance.objects.filter(run=run, leased_by=worker)


def _no_room(cluster: IndexCluster, part: int, room: int) -> NoRoom:
    return NoRoom(
        f"waits for the index cluster `{cluster}`: its part is {as_percent(part)}, and other jobs leave {as_percent(max(0, room))} until they have slowed down"
    )
