"""Whether a copy has a table, and how far that may be behind its source."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, Max, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from ingestion.captures.beginning import is_captured_feed
from ingestion.captures.reach import captured_upto
from ingestion.domain.following import TELL_EVERY, FollowSums
from ingestion.domain.lag import lag
from ingestion.models import Commit, JobKind, JobRun, JobState
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import BEGINNING

_FOLLOW_RUNS_READ = 3
"""The newest may not have looked yet."""
SYNC_KINDS = (JobKind.BOOTSTRAP, JobKind.INCREMENTAL)
"""The runs that read what is new in the source."""


def lag_of_copy(copy: DatasetCopy, *, now: datetime) -> timedelta | None:
    """How far the copy may be behind its source: what was committed there since the last look that took everything in is not known to be here."""
    # What a look of a follow run has seen is told a minute later at most.
    every = max(copy.dataset.feed.every, TELL_EVERY)
    is_log = is_captured_feed(copy.dataset.feed_or_none)
    known_at = captured_complete_upto(copy) if is_log else complete_upto(copy)
    return lag(complete_upto=known_at, every=every, now=now)


def captured_complete_upto(copy: DatasetCopy) -> datetime | None:
    """Of a captured dataset: what was committed in the source before is here, however long ago that was. None: it is not known."""
    looked_at = _followed_upto(copy)
    return None if looked_at is None else captured_upto(copy, looked_at)


def complete_upto(copy: DatasetCopy) -> datetime | None:
    """What was committed in the source before is here: when the last look began that took everything in. None: none did."""
    whole = _looks(copy).filter(Q(report__has_more=False) | Q(report__has_more__isnull=True))
    latest: datetime | None = whole.aggregate(at=Max("started_at"))["at"]
    return max((at for at in (latest, _followed_upto(copy)) if at is not None), default=None)


def _followed_upto(copy: DatasetCopy) -> datetime | None:
    """By the looks of follow runs, which know how far a changelog had come then."""
    followed = copy.runs.filter(kind=JobKind.FOLLOW, pk__gt=_last_drop(copy, "pk") or 0).order_by("-pk")
    sums = (FollowSums.from_json(stored) for stored in followed.values_list("progress", flat=True)[:_FOLLOW_RUNS_READ])
    return max((each.looked_at for each in sums if each.looked_at is not None), default=None)


def is_loaded(copy: DatasetCopy) -> bool:
    """A bootstrap has succeeded since the last drop."""
    return _looks(copy).filter(kind=JobKind.BOOTSTRAP).exists()


def has_table(copy: DatasetCopy) -> bool:
    """It was loaded, or somebody else's commits are on its timeline, and it was not dropped since. A part of a load is no table yet."""
    return bool(with_table([copy.pk]))


def with_table(copies: Collection[int]) -> set[int]:
    """Those of them that have one. One query."""
    ended = JobRun.objects.filter(copy=OuterRef("pk"), state=JobState.SUCCEEDED)
    drops = ended.filter(kind=JobKind.DROP).order_by("-pk")
    loads = ended.filter(kind=JobKind.BOOTSTRAP, pk__gt=Coalesce(OuterRef("drop"), 0))
    commits = Commit.objects.filter(copy=OuterRef("pk"), is_part_of_load=False)
    since = Coalesce(OuterRef("dropped_at"), Value(BEGINNING))
    known = DatasetCopy.with_removed.filter(pk__in=copies).annotate(
        drop=Subquery(drops.values("pk")[:1]), dropped_at=Subquery(drops.values("started_at")[:1])
    )
    return set(
        known.filter(Exists(loads) | Exists(commits.filter(completed_at__gt=since))).values_list("pk", flat=True)
    )


def _looks(copy: DatasetCopy) -> QuerySet[JobRun]:
    return copy.runs.filter(kind__in=SYNC_KINDS, state=JobState.SUCCEEDED, pk__gt=_last_drop(copy, "pk") or 0)


def _last_drop(copy: DatasetCopy, fact: str) -> Any:
    drops = copy.runs.filter(kind=JobKind.DROP, state=JobState.SUCCEEDED)
    return drops.order_by("-pk").values_list(fact, flat=True).first()
