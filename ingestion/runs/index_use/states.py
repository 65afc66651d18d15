"""What can be said of the index of each copy of a dataset: which it is, whether it was verified, and where it is in a cluster, what its jobs may ask and have asked there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from ingestion.domain.index_cluster.allowed_qps import allowed_qps
from ingestion.index_shares.shares import asks_seldom
from ingestion.index_shares.standing import HBASE
from ingestion.lake.findings import INDEX_WRONG
from ingestion.lake.index_findings import index_sentence
from ingestion.models import Finding, IndexCluster, IndexShare, JobKind, JobRun, JobState
from ingestion.runs.index_choice.states import CopyIndex, copy_indexes
from ingestion.runs.index_use.allowances import cluster_problem
from ingestion.runs.index_use.waits import waiting_for_cluster, waiting_runs
from lakehub.catalog.models import Dataset, DatasetCopy


@dataclass(frozen=True)
class IndexState:
    """`choice`: which index its jobs use, and which is to take its place. `waits_for`: why a job does not go on; empty: none waits. `verified`: the newest look at it that has ended well.

    `cluster`, `share`: None where there is none, or for another kind."""

    copy: DatasetCopy
    choice: CopyIndex
    cluster: IndexCluster | None
    share: IndexShare | None
    waits_for: str
    verified: JobRun | None

    @property
    def kind(self) -> str:
        """That its jobs use."""
        return self.choice.index

    @property
    def is_in_cluster(self) -> bool:
        return self.kind == HBASE

    @property
    def is_asked_seldom(self) -> bool:
        return self.is_in_cluster and asks_seldom(self.copy.dataset)

    @property
    def change(self) -> str:
        """How far another one is; empty: none was chosen."""
        return self.choice.sentence if self.choice.is_changing or self.choice.removal else ""

    @property
    def data_center(self) -> str:
        return self.copy.data_center.name

    @property
    def problem(self) -> str:
        """What has to be done before a job can look keys up; empty: nothing."""
        return cluster_problem(self.copy, self.cluster) if self.is_in_cluster else ""

    @property
    def entries(self) -> int | None:
        return None if self.share is None else self.share.rows

    @property
    def servers(self) -> int | None:
        return None if self.share is None else self.share.servers

    @property
    def requests(self) -> int | None:
        """All that its jobs have sent."""
        return None if self.share is None else self.share.requests

    @property
    def allowed_per_s(self) -> int | None:
        return None if self.share is None else allowed_of(self.share)

    @property
    def used_at(self) -> datetime | None:
        return None if self.share is None else self.share.used_at

    @property
    def used_requests(self) -> int | None:
        return None if self.share is None or self.share.used_at is None else self.share.used_requests

    @property
    def used_per_s(self) -> int | None:
        return None if self.share is None else used_of(self.share)

    @property
    def verified_at(self) -> datetime | None:
        return None if self.verified is None else self.verified.ended_at

    @property
    def verified_right(self) -> bool | None:
        """Nothing was found that does harm."""
        if self.verified is None:
            return None
        problems = self.verified.report["output"]["problems"]
        return not any(keys for name, keys in problems.items() if name != "without_row")

    @property
    def verified_sentence(self) -> str:
        return "" if self.verified is None else index_sentence(self.verified.report["output"])


def allowed_of(share: IndexShare) -> int | None:
    """Requests a second of all jobs of the copy together; None: its cluster was not benchmarked."""
    qps = share.cluster.qps_per_server
    return None if qps is None else int(allowed_qps(share.servers, qps, share.fraction))


def used_of(share: IndexShare) -> int | None:
    """Requests a second of the last job that sent any, while it sent them: over a second at least, as what that may have is sent at once. None: none has."""
    return None if share.used_at is None else round(share.used_requests / max(1.0, share.used_seconds))


def index_states(dataset: Dataset) -> list[IndexState]:
    """By data center; none where Lakehub loads no table. Five queries at most, and one for each copy whose index is being changed."""
    if not dataset.is_loaded_from_connection:
        return []
    choices = {choice.copy.pk: choice for choice in copy_indexes(dataset)}
    has_cluster = any(choice.index == HBASE for choice in choices.values())
    copies = dataset.copies.annotate(verified=Subquery(_verifications("pk").values("pk")[:1]))
    copies = copies.select_related("data_center", "index_change").order_by("data_center__name")
    if has_cluster:
        copies = copies.select_related("data_center__index_cluster", "index_share__cluster", "index_change")
        copies = copies.defer("data_center__index_cluster__url", "index_share__cluster__url")
    runs = JobRun.objects.in_bulk([copy.verified for copy in copies if copy.verified is not None])
    waits = _waits_of(copies) if has_cluster else {}
    return [
        _state_of(copy, dataset, choices[copy.pk], runs.get(copy.verified), waits.get(copy.pk, "")) for copy in copies
    ]


def with_verifications(shares: QuerySet[IndexShare]) -> QuerySet[Any]:
    """With `verified_at`, when an index was last compared with its table, and `is_wrong`: entries are known to be."""
    wrong = Finding.objects.filter(copy=OuterRef("copy_id"), kind=INDEX_WRONG, cleared_at=None)
    verified_at = _verifications("copy_id").values("ended_at")[:1]
    return shares.annotate(verified_at=Subquery(verified_at), is_wrong=Exists(wrong))


def with_waits(shares: QuerySet[IndexShare]) -> QuerySet[Any]:
    """With `waits_for` of the job that has waited longest."""
    waits = waiting_runs().filter(copy=OuterRef("copy_id")).order_by("pk").values("error")[:1]
    return shares.annotate(waits_for=Subquery(waits))


def _verifications(copy: str) -> QuerySet[JobRun]:
    """That have ended well, the newest first. `copy`: the column of the query around it."""
    runs = JobRun.objects.filter(copy=OuterRef(copy), kind=JobKind.VERIFY_INDEX, state=JobState.SUCCEEDED)
    return runs.order_by("-ended_at", "-pk")


def _state_of(
    copy: DatasetCopy, dataset: Dataset, choice: CopyIndex, verified: JobRun | None, waits_for: str
) -> IndexState:
    copy.dataset = dataset
    is_hbase = choice.index == HBASE
    cluster = getattr(copy.data_center, "index_cluster", None) if is_hbase else None
    share = getattr(copy, "index_share", None) if is_hbase else None
    return IndexState(copy, choice, cluster, share, waits_for, verified)


def _waits_of(copies: Iterable[DatasetCopy]) -> Mapping[int, str]:
    """By copy, of the job that has waited longest."""
    runs = waiting_for_cluster([copy.pk for copy in copies])
    return dict(runs.reverse().values_list("copy", "error"))
