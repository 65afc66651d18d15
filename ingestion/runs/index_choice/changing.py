"""Another index for a dataset: a run of its own builds it, and jobs go on with the former one until it stands.

What has nothing to build stands at once. Then the former one's table of HBase is removed, once no job can still use it.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import QuerySet

from ingestion.index_shares.standing import HBASE, wanted_index
from ingestion.models import IndexChange, IndexCluster, JobKind, JobRun, JobState
from ingestion.runs.copy_lag import has_table
from lakehub.accounts.audit import audit_log
from lakehub.catalog.datasets.feed_options import effective_options
from lakehub.catalog.models import DatasetCopy, Feed

BUILT_INDEXES = (HBASE, "record_index")
"""They keep something that is made from the table. What others go by is read when it is asked for."""
_NOT_BEGUN = (JobState.QUEUED, JobState.WAITING, JobState.PAUSED)
_LEAST_WAIT = timedelta(minutes=5)
"""Longer than the deadline of a batch of a follow run."""


def index_problems(index: str, data_centers: Collection[str]) -> list[str]:
    """The port `catalog.IndexCheck`."""
    if index != HBASE:
        return []
    clusters = {cluster.data_center.name: cluster for cluster in IndexCluster.objects.select_related("data_center")}
    missing = [name for name in data_centers if name not in clusters]
    problems = [
        f"The index `{HBASE}` needs an index cluster in each data center, and {name} has none. Add it with "
        f"`manage.py index_clusters add NAME --data-center {name}`, or choose another index."
        for name in missing
    ]
    return problems + [
        f"The index cluster `{clusters[name]}` of {name} was not benchmarked, so no job may send requests there. Run "
        f"`manage.py index_clusters benchmark {clusters[name]}`, or choose another index."
        for name in data_centers
        if name not in missing and clusters[name].qps_per_server is None
    ]


def index_changed(dataset_id: int, was: str, becomes: str, *, actor: str, now: datetime) -> None:
    """The port `catalog.IndexChangeObserver`. A copy without a table gets the index with its first load."""
    copies = DatasetCopy.with_removed.filter(dataset=dataset_id, removed_at=None).exclude(uri="")
    for copy in copies.select_related("index_change", "data_center", "dataset__feed").order_by("pk"):
        if has_table(copy):
            _change(copy, was, becomes, actor=actor, now=now)


def _change(copy: DatasetCopy, was: str, becomes: str, *, actor: str, now: datetime) -> None:
    change: IndexChange | None = getattr(copy, "index_change", None)
    standing = was if change is None else change.former
    stands = becomes == standing or becomes not in BUILT_INDEXES
    _cancel(copy, JobKind.REBUILD_INDEX, now=now, why=f"the index `{was}` is not wanted any more")
    if becomes == HBASE:
        _cancel(copy, JobKind.DROP_INDEX, now=now, why=f"the index `{HBASE}` is wanted again")
    if stands:
        IndexChange.objects.filter(copy=copy).delete()
    else:
        IndexChange.objects.update_or_create(copy=copy, defaults={"former": standing})
        _ask(copy, JobKind.REBUILD_INDEX, actor=actor, now=now, due_at=now)
    if HBASE in ({was, standing} if stands else {was} - {standing}) - {becomes}:
        ask_for_removal(copy, actor=actor, now=now)


def note_built(run: JobRun, built: str, *, now: datetime) -> None:
    """A `rebuild_index` has succeeded, in the transaction that says so: jobs that begin from now on use the index, if it is still the one that is wanted."""
    copy = run.copy
    # Whoever chooses another one at the same time is before this or after it.
    copy.dataset.feed = Feed.objects.select_for_update(of=("self",)).get(dataset=copy.dataset_id)
    change = IndexChange.objects.filter(copy=copy).first()
    wanted, left = wanted_index(copy), built
    if change is not None and built == wanted:
        change.delete()
        left = change.former
    elif change is not None and built == change.former:
        return
    if left == HBASE != wanted:
        ask_for_removal(copy, actor=run.asked_by, now=now)


def ask_for_removal(copy: DatasetCopy, *, actor: str, now: datetime) -> None:
    """When all jobs that were told of the index have ended: each is stopped at its deadline."""
    deadline = timedelta(seconds=float(effective_options(copy.dataset.feed.options)["deadline_s"]))
    if not _not_begun(copy, JobKind.DROP_INDEX).exists():
        _ask(copy, JobKind.DROP_INDEX, actor=actor, now=now, due_at=now + max(deadline, _LEAST_WAIT))


def may_have_table_in_hbase(copy: DatasetCopy) -> bool:
    """Also one that an index left that was changed, as long as its removal has not succeeded."""
    change: IndexChange | None = getattr(copy, "index_change", None)
    if HBASE in (wanted_index(copy), "" if change is None else change.former):
        return True
    newest = JobRun.objects.filter(copy=copy, kind=JobKind.DROP_INDEX).order_by("-pk").values_list("state", flat=True)
    return newest.first() not in (None, JobState.SUCCEEDED)


def _ask(copy: DatasetCopy, kind: JobKind, *, actor: str, now: datetime, due_at: datetime) -> None:
    run = JobRun.objects.create(copy=copy, kind=kind, asked_by=actor, due_at=due_at)
    audit_log.record(actor, kind, f"copy:{copy}", now=now, run=run.pk)


def _cancel(copy: DatasetCopy, kind: JobKind, *, now: datetime, why: str) -> None:
    _not_begun(copy, kind).update(state=JobState.CANCELLED, ended_at=now, error=why)


def _not_begun(copy: DatasetCopy, kind: JobKind) -> QuerySet[JobRun]:
    return JobRun.objects.filter(copy=copy, kind=kind, state__in=_NOT_BEGUN)
