"""When the rows of partitions came, by the commits that Lakehub has seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from ingestion.models import Commit, TouchedPartition
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.calendar import Grain
from lakehub.kernel.interval import FOREVER, Interval
from quality.domain.backtest import Arrival, Limit


def first_commit(copy: DatasetCopy) -> datetime | None:
    """The bootstrap, which brought history in one piece."""
    return Commit.objects.filter(copy=copy).order_by("completed_at").values_list("completed_at", flat=True).first()


def arrivals(
    copy: DatasetCopy, partitions: Sequence[Interval], *, until: datetime = FOREVER
) -> dict[Interval, list[Arrival]]:
    """The commits of each of the partitions, which are in order."""
    found: dict[Interval, list[Arrival]] = {one: [] for one in partitions}
    if not partitions:
        return found
    within = {"start__gte": partitions[0].start, "end__lte": partitions[-1].end, "commit__completed_at__lte": until}
    touched = TouchedPartition.objects.filter(copy=copy, **within)
    for start, end, at, rows in touched.values_list("start", "end", "commit__completed_at", "rows"):
        if (partition := Interval(start, end)) in found:
            found[partition].append(Arrival(at, rows))
    return found


def cannot_replay(copy: DatasetCopy, limit: Limit | None, first: datetime | None) -> str:
    """Why it is not known how late the partitions were; empty where it is."""
    if limit is None:
        return "only a test of the form freshness(this) < 2h says when a partition should have been there."
    if copy.dataset.partition_grain is Grain.NONE:
        return "a table without partitions shows only how late it is now."
    if not copy.dataset.ingested:
        return "Lakehub does not ingest this dataset, so it has not seen when its rows came."
    return "" if first is not None else "no commit of this copy is known."


def said_of_commits(before: int, first: datetime) -> Iterator[str]:
    """What a replay by commits cannot know, in words. `before`: partitions that were over before the first commit."""
    yield (
        "Told by the commits: how late each partition had 99.9% of the rows that it should have. "
        "Inserts and updates are counted together, so one may have been complete a little later."
    )
    if before:
        yield (
            f"The {before:,} partitions before the first commit at {first:%Y-%m-%d %H:%M} UTC "
            "came in one piece: when their rows were there is not known."
        )
