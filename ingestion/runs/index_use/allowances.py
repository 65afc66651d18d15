"""The part of an index cluster that a job may use: jobs of a dataset split its fraction, and none takes what another still uses.

A job begins with its whole part, or waits until there is room: whoever works learns of it at its next renewal, and gives back what is above its own part
with the one after, when its job has slowed down. So at no time more is counted than the cluster has, also while fractions change. A job that dies renews
nothing, and its part is free when its lease runs out; on the same host as soon as its process is seen to be gone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db.models import Q, QuerySet, Sum
from django.db.models.functions import Now

from ingestion.domain.index_cluster.allowed_qps import allowed_qps
from ingestion.domain.index_cluster.fractions import WHOLE, as_percent
from ingestion.index_shares.shares import is_in_cluster, locked, recompute
from ingestion.index_shares.standing import HBASE
from ingestion.models import IndexAllowance, IndexCluster, IndexShare, JobKind, JobRun, JobState
from ingestion.runs.leases import LEASE_DURATION, lease_end
from ingestion.runs.source_use.source_limits import RETRY_AFTER, Crowded
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Refused

_MORE_ROOM = (
    "Give the dataset a larger fraction with `manage.py index_clusters set-fraction`, or run fewer of its jobs at once."
)
WAITS_FOR_CLUSTER = "waits for the index cluster"
"""So begins why a job waits that finds no room there."""
logger = logging.getLogger(__name__)

UNPACED_KINDS = (JobKind.BOOTSTRAP, JobKind.REBUILD_INDEX, JobKind.DROP_INDEX, JobKind.DROP, JobKind.SET_POSITION)
"""They load whole files of entries into the cluster, drop the table there, or leave it alone: no request is sent for a key."""
_AT_WORK = (JobState.QUEUED, JobState.RUNNING)
_MARGIN_S = 5.0
"""Between the moment up to which a job uses what it has not been able to renew, and the one at which others may take it: it is told a few seconds late."""


class NoIndexCluster(Refused):
    """The data center of the copy has no cluster, or one that was not benchmarked."""


@dataclass
class Allowance:
    """What a job holds. `renew` it every quarter of LEASE_DURATION from a thread beside the job, tell the job what `parts` says then, `release` it at the end."""

    run: JobRun
    worker: str
    cluster: IndexCluster
    _part: int
    _servers: int
    _renewed_at: float
    clock: Callable[[], float] = time.monotonic

    @property
    def parts(self) -> int:
        """Of WHOLE, that the job may use now. 0: it was lost, or could not be renewed for as long as it lasts: the job sends nothing."""
        lasts = LEASE_DURATION.total_seconds() - _MARGIN_S
        return self._part if self.clock() < self._renewed_at + lasts else 0

    def requests_per_s(self) -> float:
        """Of the job, as of the last renewal. It needs no database, so the job may ask from any thread."""
        return float(allowed_qps(self._servers, self.cluster.qps_per_server or 0, self.parts))

    def renew(self) -> bool:
        """False: it was lost, and there is no room for it now. Raises the database's errors, after which `parts` holds until the lease would run out."""
        asked_at = self.clock()
        with locked(self.cluster):
            # As long as it is there nobody was given it, also where it had run out.
            _own(self.run, self.worker).update(leased_until=lease_end(LEASE_DURATION))
            part = _renewed_part(self.cluster, self.run, self.worker)
            self.cluster.refresh_from_db()
            servers = _servers_of(self.run)
        self._part, self._servers, self._renewed_at = part, servers, asked_at
        return part > 0

    def release(self) -> None:
        release(self.run, self.worker)


def needs_allowance(run: JobRun) -> bool:
    return run.kind not in UNPACED_KINDS and is_in_cluster(run.copy)


@contextmanager
def allowance_of(run: JobRun, worker: str) -> Iterator[Allowance | Crowded | None]:
    """As `take` says; what it has is given back when the block ends. A copy that is followed keeps its place among the jobs of its dataset until the next batch, if that
    comes soon: these would else grow after each batch, and the next one would wait until they have slowed down."""
    allowance = take(run, worker)
    try:
        yield allowance
    finally:
        if isinstance(allowance, Allowance):
            if run.kind == JobKind.FOLLOW:
                _keep_place(run, worker)
            else:
                allowance.release()


def take(run: JobRun, worker: str, *, clock: Callable[[], float] = time.monotonic) -> Allowance | Crowded | None:
    """None: its jobs send no requests to a cluster. Whoever finds no room keeps its place among the jobs that split the fraction, while it asks again.

    Raises NoIndexCluster where the data center of the copy has no cluster, or one that was not benchmarked.
    """
    if not needs_allowance(run):
        return None
    asked_at, cluster = clock(), _cluster_of(run)
    with locked(cluster):
        part, servers = _first_part(cluster, run, worker), _servers_of(run)
    if isinstance(part, Crowded):
        return part
    return Allowance(run, worker, cluster, part, servers, asked_at, clock)


def release(run: JobRun, worker: str) -> None:
    """Also where it has none, or waits no more."""
    _own(run, worker).delete()


def _keep_place(run: JobRun, worker: str) -> None:
    """For a lease, with nothing to send: nobody's until the next batch."""
    kept = {"fraction": 0, "told_fraction": 0, "leased_by": "", "leased_until": lease_end(LEASE_DURATION)}
    _own(run, worker).update(**kept)


def cluster_problem(copy: DatasetCopy, cluster: IndexCluster | None) -> str:
    """Why no job of a copy whose index is in a cluster can look keys up, and what to do; empty: it can."""
    center = copy.data_center
    if cluster is None:
        return (
            f"The index of `{copy.dataset.name}` is `{HBASE}`, and the data center {center} has no index cluster. Add it with "
            f"`manage.py index_clusters add NAME --data-center {center}`, or choose another index for the dataset."
        )
    if cluster.qps_per_server is None:
        return (
            f"The index cluster `{cluster}` was not benchmarked, so it is not known how many requests a second its servers answer. "
            f"Measure it with `manage.py index_clusters benchmark {cluster}`, or set it with `manage.py index_clusters set-qps {cluster} QPS`."
        )
    return ""


def _cluster_of(run: JobRun) -> IndexCluster:
    cluster = IndexCluster.objects.filter(data_center=run.copy.data_center).first()
    if problem := cluster_problem(run.copy, cluster):
        raise NoIndexCluster(problem)
    assert cluster is not None  # else there is a problem
    return cluster


def _share_of(run: JobRun, cluster: IndexCluster) -> IndexShare:
    """It is made here where the dataset has just come."""
    share = IndexShare.objects.filter(copy=run.copy_id).first()
    if share is None or share.fraction == 0:
        recompute(cluster)
        share = IndexShare.objects.filter(copy=run.copy_id).first()
    if share is None:
        raise NoIndexCluster(f"`{run.copy}` was taken from the index cluster `{cluster}` before its job began.")
    return share


def _servers_of(run: JobRun) -> int:
    """That host the copy's table, as the last job has counted them."""
    return IndexShare.objects.filter(copy=run.copy_id).values_list("servers", flat=True).first() or 1


def _first_part(cluster: IndexCluster, run: JobRun, worker: str) -> int | Crowded:
    """All of its part, or nothing: it may be that another worker is still counted for this run, with what its job may still send."""
    _drop_lapsed(cluster)
    # A place that was kept is not one that waits: it asks for the first time.
    IndexAllowance.objects.filter(run=run, leased_by="").delete()
    share = _share_of(run, cluster)
    lease = {"leased_by": worker, "leased_until": lease_end(LEASE_DURATION)}
    IndexAllowance.objects.get_or_create(run=run, defaults={"share": share, "asked_at": Now(), **lease})
    is_own = Q(leased_by=worker) | Q(fraction=0)
    if not IndexAllowance.objects.filter(is_own, run=run).update(share=share, **lease):
        return _crowded(run, f"{WAITS_FOR_CLUSTER} `{cluster}`: another worker holds the part of this run")
    part, room = share.fraction // share.allowances.count(), _room(cluster, run, share)
    if not 0 < part <= room:
        left = as_percent(max(0, room))
        why = f"{WAITS_FOR_CLUSTER} `{cluster}`: its part is {as_percent(part)}, and other jobs leave {left} until they have slowed down"
        return _crowded(run, why)
    _own(run, worker).update(fraction=part, told_fraction=part)
    return part


def _renewed_part(cluster: IndexCluster, run: JobRun, worker: str) -> int:
    """What a job that works is told: less at once, more as far as there is room. One that lost its part begins anew, with 0 until there is room."""
    _drop_lapsed(cluster)
    own = _own(run, worker).filter(fraction__gt=0).select_related("share").first()
    if own is None:
        return _part_again(cluster, run, worker)
    before, part = own.told_fraction, own.share.fraction // own.share.allowances.count()
    present = part if part <= before else max(before, min(part, _room(cluster, run, own.share)))
    # What it was told before counts until the next renewal: so long it may take the job to slow down.
    _own(run, worker).update(told_fraction=present, fraction=max(before, present))
    return present


def _part_again(cluster: IndexCluster, run: JobRun, worker: str) -> int:
    try:
        part = _first_part(cluster, run, worker)
    except NoIndexCluster as problem:
        logger.warning("%s has lost its part of an index cluster: %s", run, problem)
        return 0
    return 0 if isinstance(part, Crowded) else part


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


def _crowded(run: JobRun, why: str) -> Crowded:
    own = IndexAllowance.objects.annotate(now=Now()).get(run=run)
    return Crowded(why, own.now - own.asked_at, RETRY_AFTER, _MORE_ROOM)
