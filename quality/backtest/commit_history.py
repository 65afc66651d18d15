"""When the rows of partitions came, by the commits that Lakehub has seen."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings

from ingestion.models import Commit, TouchedPartition
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.partitions import Grain
from quality.domain.backtest import FreshnessLimit


def first_commit(copy: DatasetCopy) -> datetime | None:
    """The bootstrap, which brought history in one piece."""
    return Commit.objects.filter(copy=copy).order_by("completed_at").values_list("completed_at", flat=True).first()


def touched_partitions_known_since(copy: DatasetCopy, first: datetime, *, now: datetime) -> datetime | None:
    """From when on it is known which partitions the commits touched, where older ones were forgotten; None: all is known."""
    if first >= now - timedelta(days=settings.LAKEHUB_HISTORY_KEPT_DAYS):
        return None
    touched_partitions = TouchedPartition.objects.filter(copy=copy).order_by("commit__completed_at")
    oldest = touched_partitions.values_list("commit__completed_at", flat=True).first()
    if oldest is None:
        return now
    return oldest if oldest > first else None


def why_not_replayable(copy: DatasetCopy, limit: FreshnessLimit | None, first: datetime | None) -> str:
    """Why it is not known how late the partitions were; empty where it is."""
    if limit is None:
        return "only a test of the form freshness(this) < 2h says when a partition should have been there."
    if copy.dataset.partition_grain is Grain.NONE:
        return "a table without partitions shows only how late it is now."
    if not copy.dataset.ingested:
        return "Lakehub does not ingest this dataset, so it has not seen when its rows came."
    return "" if first is not None else "no commit of this copy is known."


def replay_notes(before: int, first: datetime, forgotten: int, since: datetime | None) -> Iterator[str]:
    """What a replay by commits cannot know, in words. `before`: partitions that were over before the first commit;
    `forgotten`: those that began before `since`."""
    yield (
        "Told by the commits: how late each partition had 99.9% of the rows that it should have. "
        "Inserts and updates are counted together, so one may have been complete a little later."
    )
    if before:
        yield (
            f"The {before:,} partitions before the first commit at {first:%Y-%m-%d %H:%M} UTC "
            "came in one piece: when their rows were there is not known."
        )
    if forgotten and since is not None:
        yield (
            f"{forgotten:,} partitions before {since:%Y-%m-%d %H:%M} UTC are not replayable: "
            f"when their rows came is remembered for {settings.LAKEHUB_HISTORY_KEPT_DAYS} days."
        )
