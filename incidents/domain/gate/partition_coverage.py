"""The partitions that meet a question: from before monitoring, due, not due yet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import BEGINNING, FOREVER, Interval, earlier, later, subtract
from lakehub.kernel.partitions import Grain, floor_to_bucket, partition_at


@dataclass(frozen=True)
class PartitionCoverage:
    """`data_range` in whole partitions, and the partition boundaries that part it. Most tests of a copy have the same."""

    data_range: Interval
    grain: Grain
    zone: ZoneInfo
    due_after: timedelta
    monitored_from: datetime
    due_to: datetime

    @cached_property
    def unmonitored(self) -> Interval | None:
        return split_at(self.data_range, self.monitored_from)[0]

    @cached_property
    def due(self) -> tuple[Interval, ...]:
        start, end = max(self.data_range.start, self.monitored_from), min(self.data_range.end, self.due_to)
        return (Interval(start, end),) if start < end else ()

    def not_due(self, except_for: Iterable[Interval] = ()) -> tuple[Interval, ...]:
        return () if self._waiting is None else subtract((self._waiting,), except_for)

    @cached_property
    def _waiting(self) -> Interval | None:
        return split_at(self.data_range, max(self.due_to, self.monitored_from))[1]

    def due_at(self, data: Interval) -> datetime:
        """When the first partition of `data` must be whole."""
        return later(partition_at(data.start, self.grain, self.zone).end, self.due_after)


@lru_cache(maxsize=64)
def coverage_of(
    data_range: Interval,
    grain: Grain,
    zone: ZoneInfo,
    monitored_from: datetime | None,
    due_after: timedelta,
    *,
    now: datetime,
) -> PartitionCoverage:
    """A partition [a, b) is unmonitored where b <= `monitored_from`, and due from b + `due_after` on.

    A table without partitions is one piece that is always due; it is monitored from its first test on. Most tests of a copy ask
    for the same.
    """
    if grain is Grain.NONE:
        return PartitionCoverage(data_range, grain, zone, due_after, BEGINNING, FOREVER)
    whole, monitored = _in_partitions(data_range, monitored_from, grain, zone)
    return PartitionCoverage(
        whole, grain, zone, due_after, monitored, floor_to_bucket(earlier(now, due_after), grain, zone)
    )


def split_at(data: Interval, at: datetime) -> tuple[Interval | None, Interval | None]:
    """What lies before `at`, and what from there on."""
    if at <= data.start:
        return None, data
    if at >= data.end:
        return data, None
    return Interval(data.start, at), Interval(at, data.end)


@lru_cache(maxsize=64)
def _in_partitions(
    data_range: Interval, monitored_from: datetime | None, grain: Grain, zone: ZoneInfo
) -> tuple[Interval, datetime]:
    """The same for all tests of a copy, and for the next question."""
    start = floor_to_bucket(data_range.start, grain, zone)
    monitored = FOREVER if monitored_from is None else floor_to_bucket(monitored_from, grain, zone)
    return Interval(start, _ceiling(data_range.end, grain, zone)), monitored


def _ceiling(end: datetime, grain: Grain, zone: ZoneInfo) -> datetime:
    """The partition boundary at or after `end`; what is near enough to for ever stays as it is."""
    if end > FOREVER - timedelta(days=62):
        return end
    return partition_at(end - timedelta(microseconds=1), grain, zone).end
