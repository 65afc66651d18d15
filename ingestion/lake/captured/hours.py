"""Of a captured copy by the hour: how long changes took to the lake, and how many messages of the log its commits have read.

Each message of an hour is read once, from where the copy was loaded or put on. So hours in which it was, and what was read before, are partial: of these
nobody knows how many it ought to have read.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import F

from ingestion.domain.lag import LagCounts
from ingestion.domain.log_moves import LOADED_AT, LOADED_FROM
from ingestion.lake.captured.source_hours import start_of
from ingestion.models import CaptureHour, Commit
from ingestion.spark.tables.timeline import LakeCommit
from lakehub.catalog.models import DatasetCopy

HOUR = timedelta(hours=1)
KEPT = timedelta(days=90)
"""What is older is pruned, and not written."""
NOTED = frozenset({"source_times", "logged_hours", "log_move"})
"""What commits of changes say for it."""
_CLOCKS_APART = timedelta(minutes=1)
"""So far the times of messages may be from their order in the log."""


def hour_at(time: datetime) -> datetime:
    return time.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def note_commit(commit: Commit, lake_commit: LakeCommit, *, now: datetime) -> None:
    """Of a commit that was not known: in the transaction that makes it known, so it is counted once."""
    run = lake_commit.run
    if run.get("source_times"):
        _add_lags(commit, run["source_times"])
    if run.get("logged_hours"):
        _add_read(commit.copy, run["logged_hours"], now=now)
    if move := run.get("log_move"):
        note_move(commit.copy, move, now=now)
    if run.get("kind") == "bootstrap" and LOADED_FROM in (checkpoint := lake_commit.checkpoint or {}):
        began_at = checkpoint.get(LOADED_AT)
        first = datetime.fromisoformat(began_at) if began_at else commit.completed_at
        _mark_partial(commit.copy, hour_at(max(first, now - KEPT) - _CLOCKS_APART), hour_at(commit.completed_at))
        CaptureHour.objects.filter(copy=commit.copy, start__lte=commit.completed_at).update(is_partial=True)


def note_move(copy: DatasetCopy, move: Mapping[str, Any], *, now: datetime) -> None:
    """The copy was put elsewhere in its log: what it reads again is counted anew."""
    times = [datetime.fromisoformat(text) if text else now for text in (move.get("from_at"), move.get("upto_at"))]
    first, last = hour_at(min(times) - _CLOCKS_APART), hour_at(max(times if move.get("skipped") else [min(times)]))
    anew = CaptureHour.objects.filter(copy=copy, start__gte=first)
    anew.update(read=0, logged=None, source=None, is_partial=False)
    _mark_partial(copy, first, last)


def _add_lags(commit: Commit, spread: list[int]) -> None:
    start = hour_at(commit.completed_at)
    CaptureHour.objects.get_or_create(copy=commit.copy, start=start)
    hour = CaptureHour.objects.select_for_update().get(copy=commit.copy, start=start)
    lags = LagCounts.from_json(hour.lags) + LagCounts.of_commit(spread, commit.read or 0, commit.completed_at)
    CaptureHour.objects.filter(pk=hour.pk).update(lags=lags.to_json())


def _add_read(copy: DatasetCopy, by_hour: Mapping[str, int], *, now: datetime) -> None:
    counts = {start_of(hour): count for hour, count in by_hour.items()}
    recent = {start: count for start, count in counts.items() if start > now - KEPT}
    _make_rows(copy, [*recent])
    for start, count in recent.items():
        CaptureHour.objects.filter(copy=copy, start=start).update(read=F("read") + count)


def _mark_partial(copy: DatasetCopy, first: datetime, last: datetime) -> None:
    starts = [first + number * HOUR for number in range(int((last - first) / HOUR) + 1)]
    _make_rows(copy, starts)
    CaptureHour.objects.filter(copy=copy, start__gte=first, start__lte=last).update(is_partial=True)


def _make_rows(copy: DatasetCopy, starts: list[datetime]) -> None:
    CaptureHour.objects.bulk_create([CaptureHour(copy=copy, start=start) for start in starts], ignore_conflicts=True)
