"""Each copy that is in an index cluster has its fraction there, whatever came, went or grew."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ingestion.domain.index_cluster.fractions import WHOLE
from ingestion.index_shares.shares import note_commit, note_table, recompute, recompute_all, set_fraction
from ingestion.models import IndexCluster, IndexShare
from ingestion.runs.index_use.allowances import Allowance, take
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.models import DatasetCopy, DatasetKind
from lakehub.kernel.errors import NotFound, Refused
from tests import factories as given
from tests.factories import NOW
from tests.index_jobs import cluster, indexed, job, uses_another_index

pytestmark = pytest.mark.django_db


@pytest.fixture
def main() -> IndexCluster:
    return cluster()


def fractions() -> dict[str, int]:
    shares = IndexShare.objects.select_related("copy__dataset")
    return {share.copy.dataset.name: share.fraction for share in shares.order_by("copy__dataset__name")}


def test_shares_come_and_go_with_their_datasets_and_the_second_time_nothing_changes(main: IndexCluster) -> None:
    flights, planes = indexed("flights"), indexed("planes")
    indexed("crews", index="simple")
    assert (recompute_all(), fractions()) == (2, {"flights": WHOLE // 2, "planes": WHOLE // 2})
    with CaptureQueriesContext(connection) as queries:
        assert recompute(main) == 0
    assert not [query for query in queries if query["sql"].startswith(("UPDATE", "INSERT", "DELETE"))]
    uses_another_index(flights)
    assert (recompute_all(), fractions()) == (2, {"planes": WHOLE})
    given.dataset("elsewhere", copies=())
    planes.dataset.offboarded_at = NOW
    planes.dataset.save()
    assert (recompute_all(), fractions()) == (1, {})


def test_rows_that_are_never_changed_count_for_nothing(main: IndexCluster) -> None:
    """However many clicks there are, few of them are looked up."""
    flights, clicks = indexed("flights"), indexed("clicks", kind=DatasetKind.APPEND_ONLY)
    recompute_all()
    note_table(flights, rows=1_000)
    note_table(clicks, rows=1_000_000_000)
    assert fractions() == {"clicks": WHOLE // 10, "flights": WHOLE // 10 + WHOLE * 4 // 5}
    clicks.dataset.kind = DatasetKind.APPEND_PLUS_UPDATE
    clicks.dataset.save()
    recompute_all()
    assert fractions()["clicks"] > WHOLE * 4 // 5


def test_without_a_cluster_one_query_is_asked() -> None:
    indexed("flights")
    with CaptureQueriesContext(connection) as queries:
        assert recompute_all() == 0
    assert len(queries) == 1


def test_a_copy_that_was_removed_or_is_elsewhere_has_no_share(main: IndexCluster) -> None:
    flights = indexed("flights", copies=("dc1", "dc2"))
    assert recompute_all() == 1
    assert IndexShare.objects.get().copy == flights
    DatasetCopy.objects.filter(pk=flights.pk).update(removed_at=NOW)
    assert (recompute_all(), fractions()) == (1, {})


def test_rows_follow_the_commits_and_what_a_job_counted(main: IndexCluster) -> None:
    flights, _ = indexed("flights"), indexed("planes")
    given.commit(flights, inserts=1_000, deletes=100)
    recompute_all()
    assert (IndexShare.objects.get(copy=flights).rows, fractions()["flights"]) == (900, 900_000_000)
    note_commit(flights, operation="upsert", inserts=50, deletes=2_000)
    assert IndexShare.objects.get(copy=flights).rows == 0, "commits that were not known had inserted them"
    note_commit(flights, operation="upsert", inserts=7_000, deletes=0)
    note_commit(flights, operation="insert_overwrite_table", inserts=123, deletes=0)
    assert IndexShare.objects.get(copy=flights).rows == 123
    assert note_table(flights, rows=500, servers=4)
    # Of the fifth planes, on one server, has four parts of five.
    assert fractions() == {"flights": 840_000_000, "planes": 160_000_000}
    assert not note_table(flights, rows=500, servers=4)
    assert note_table(flights, servers=2)
    assert IndexShare.objects.get(copy=flights).rows == 500
    uses_another_index(flights)
    recompute_all()
    assert not note_table(flights, rows=1, servers=1), "it has no share"


def test_a_copy_that_is_let_go_keeps_its_share_while_a_job_of_it_works(main: IndexCluster) -> None:
    flights, _ = indexed("flights"), indexed("planes")
    allowance = take(job(flights), "host:1:a")
    assert isinstance(allowance, Allowance)
    uses_another_index(flights)
    assert recompute_all() == 0
    allowance.release()
    assert (recompute_all(), fractions()) == (2, {"planes": WHOLE})


def test_a_fraction_by_hand_holds_and_is_audited(main: IndexCluster) -> None:
    flights, _ = indexed("flights"), indexed("planes")
    recompute_all()
    share = set_fraction(flights, WHOLE // 10, actor="ana", now=NOW)
    assert (share.fraction, fractions()["planes"]) == (WHOLE // 10, WHOLE * 9 // 10)
    set_fraction(flights, None, actor="ana", now=NOW)
    assert fractions()["flights"] == WHOLE // 2
    entries = AuditEntry.objects.filter(action="set index fraction").order_by("pk")
    details = [(entry.subject, entry.detail["was"], entry.detail["becomes"]) for entry in entries]
    assert details == [("copy:flights@dc1", "by rule", "10%"), ("copy:flights@dc1", "10%", "by rule")]


def test_more_by_hand_than_is_left_is_refused_with_how_much_is_left(main: IndexCluster) -> None:
    flights, planes = indexed("flights"), indexed("planes")
    recompute_all()
    set_fraction(flights, WHOLE // 2, actor="ana", now=NOW)
    with pytest.raises(Refused, match=r"40% for `planes@dc1` is more than the 30% that is left of `main`"):
        set_fraction(planes, WHOLE * 2 // 5, actor="ana", now=NOW)
    set_fraction(planes, WHOLE * 3 // 10, actor="ana", now=NOW)
    for wrong in (0, -WHOLE, 9_999):
        with pytest.raises(Refused, match=r"is too small: set 0.001% or more"):
            set_fraction(planes, wrong, actor="ana", now=NOW)
    assert fractions() == {"flights": WHOLE // 2, "planes": WHOLE * 3 // 10}
    with pytest.raises(NotFound, match="`crews@dc1` has no share of an index cluster"):
        set_fraction(indexed("crews", index="simple"), WHOLE // 10, actor="ana", now=NOW)
