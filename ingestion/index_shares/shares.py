"""The fraction that each copy has of its index cluster, kept as the rule says: recomputed here, whatever has changed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q, Sum
from django.db.models.functions import Greatest, Now

from ingestion.domain.index_cluster.fractions import (
    BY_HAND_AT_MOST,
    WHOLE,
    IndexedTable,
    TooMuchByHand,
    as_percent,
    check_by_hand,
    fractions,
)
from ingestion.index_shares.standing import HBASE, standing_index
from ingestion.models import Commit, IndexAllowance, IndexCluster, IndexShare
from lakehub.accounts.audit import audit_log
from lakehub.catalog.datasets.feed_options import has_changelog
from lakehub.catalog.models import Dataset, DatasetCopy, DatasetKind
from lakehub.kernel.errors import NotFound, Refused

LEAST_BY_HAND = WHOLE // 100_000
"""0.001%: people enter no less."""
_WHOLE_TABLE = "insert_overwrite_table"
"""The operation after which a table has the rows that it inserted, and no other."""


def is_in_cluster(copy: DatasetCopy) -> bool:
    """Whether jobs look its keys up in a cluster."""
    return standing_index(copy) == HBASE


def asks_seldom(dataset: Dataset) -> bool:
    """Of a dataset whose rows are never changed only those are looked up that come late, or that somebody loads or deletes again."""
    return dataset.kind == DatasetKind.APPEND_ONLY and not has_changelog(dataset)


def recompute_all() -> int:
    """Of all clusters; how many shares came, went or changed. Where there is no cluster it asks one query."""
    return sum(recompute(cluster) for cluster in IndexCluster.objects.all())


def recompute(cluster: IndexCluster) -> int:
    """Gives each copy that is in the cluster its fraction, and takes it from those that are not any more. How many changed; the second time none.

    A copy that is let go keeps its share while a job of it is at work.
    """
    with locked(cluster):
        wanted = {copy.pk: copy for copy in copies_of(cluster) if is_in_cluster(copy)}
        shares = {share.pk: share for share in IndexShare.objects.filter(cluster=cluster)}
        in_use = set(
            IndexAllowance.objects.filter(share__cluster=cluster, leased_until__gte=Now()).values_list(
                "share", flat=True
            )
        )
        gone = shares.keys() - wanted.keys() - in_use
        come = [_new_share(cluster, copy) for key, copy in wanted.items() if key not in shares]
        if gone:
            IndexShare.objects.filter(pk__in=gone).delete()
        IndexShare.objects.bulk_create(come)
        kept = {key: share for key, share in shares.items() if key not in gone} | {share.pk: share for share in come}
        return len(gone) + _write_fractions(
            kept, seldom={key for key, copy in wanted.items() if asks_seldom(copy.dataset)}
        )


def note_table(copy: DatasetCopy, *, servers: int | None = None, rows: int | None = None) -> bool:
    """A job has counted the servers that host the copy's table in the cluster, or its rows. Whether that changed anything; False where it has no share."""
    share = IndexShare.objects.select_related("cluster").filter(copy=copy).first()
    if share is None:
        return False
    with locked(share.cluster):
        facts = {} if servers is None else {"servers": max(1, servers)}
        facts |= {} if rows is None else {"rows": max(0, rows)}
        changed = IndexShare.objects.filter(copy=copy).exclude(**facts).update(**facts)
        return bool(changed) and bool(recompute(share.cluster))


def note_commit(copy: DatasetCopy, *, operation: str, inserts: int, deletes: int) -> None:
    """A commit was recorded, once: the rows of the copy are more or less by so many. The fractions follow with the next `recompute`."""
    rows = inserts if operation == _WHOLE_TABLE else Greatest(F("rows") + inserts - deletes, 0)
    IndexShare.objects.filter(copy=copy).update(rows=rows)


def set_fraction(copy: DatasetCopy, parts: int | None, *, actor: str, now: datetime) -> IndexShare:
    """By hand; None: by the rule again. Raises Refused, with how much is left, and NotFound where the copy is in no cluster."""
    share = IndexShare.objects.select_related("cluster").filter(copy=copy).first()
    if share is None:
        raise NotFound(
            f"`{copy}` has no share of an index cluster: either the index of its feed is not `{HBASE}`, or its data center has no cluster. "
            "`manage.py index_clusters list` shows the clusters and their datasets."
        )
    with locked(share.cluster):
        share.refresh_from_db()
        if parts is not None:
            _check_fraction(share, parts)
        was = share.fraction_by_hand
        IndexShare.objects.filter(pk=share.pk).update(fraction_by_hand=parts)
        recompute(share.cluster)
        shown = {"was": _shown(was), "becomes": _shown(parts), "cluster": share.cluster.name}
        audit_log.record(actor, "set index fraction", f"copy:{copy}", now=now, **shown)
    share.refresh_from_db()
    return share


@contextmanager
def locked(cluster: IndexCluster) -> Iterator[None]:
    """A transaction in which nobody else changes shares or allowances of the cluster."""
    with transaction.atomic():
        IndexCluster.objects.select_for_update().get(pk=cluster.pk)
        yield


def copies_of(cluster: IndexCluster) -> list[DatasetCopy]:
    """Those, too, that are being built: they are loaded."""
    copies = DatasetCopy.with_removed.select_related("dataset__feed__connection", "index_change")
    uses_it = Q(dataset__feed__options__index=HBASE) | Q(index_change__former=HBASE)
    live = {"removed_at": None, "dataset__offboarded_at": None, "dataset__ingested": True}
    return list(copies.filter(uses_it, **live, data_center=cluster.data_center_id))


def _new_share(cluster: IndexCluster, copy: DatasetCopy) -> IndexShare:
    """With the rows that the commits of the copy left, as far as they are known: its next load counts them."""
    left = Commit.objects.filter(copy=copy).aggregate(rows=Sum(F("inserts") - F("deletes"), default=0))
    return IndexShare(copy=copy, cluster=cluster, rows=max(0, left["rows"]))


def _write_fractions(shares: Mapping[int, IndexShare], *, seldom: Collection[int]) -> int:
    """`seldom`: those whose rows say nothing of how many keys are asked for; they live on the even part."""
    tables = {
        key: IndexedTable(0 if key in seldom else share.rows, share.servers, share.fraction_by_hand)
        for key, share in shares.items()
    }
    parts = fractions(tables)
    changed = [share for key, share in shares.items() if share.fraction != parts[key]]
    for share in changed:
        share.fraction = parts[share.pk]
    IndexShare.objects.bulk_update(changed, ["fraction"])
    return len(changed)


def _check_fraction(share: IndexShare, parts: int) -> None:
    by_hand = {
        other.pk: other.fraction_by_hand
        for other in IndexShare.objects.filter(cluster=share.cluster)
        if other.fraction_by_hand is not None
    }
    if parts < LEAST_BY_HAND:
        raise Refused(f"The fraction {as_percent(parts)} is too small: set {as_percent(LEAST_BY_HAND)} or more.")
    try:
        check_by_hand(by_hand, share.pk, parts)
    except TooMuchByHand as problem:
        raise Refused(
            f"The fraction {as_percent(parts)} for `{share.copy}` is more than the {as_percent(problem.left)} that is left of `{share.cluster}`: all that are set "
            f"by hand have {as_percent(BY_HAND_AT_MOST)} together, so that the other datasets have the rest. Set less, or set another dataset's back."
        ) from problem


def _shown(parts: int | None) -> str:
    return "by rule" if parts is None else as_percent(parts)
