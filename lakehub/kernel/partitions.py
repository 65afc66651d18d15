"""Partitions as calendar intervals: a day in a time zone has 23 or 25 hours twice a year."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval


class Grain(StrEnum):
    """How wide one partition is. NONE: the table is one piece."""

    NONE = "none"
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"

    @property
    def width(self) -> timedelta:
        """The nominal width, to grow a range by one grain."""
        return {
            Grain.NONE: timedelta(),
            Grain.HOUR: timedelta(hours=1),
            Grain.DAY: timedelta(days=1),
            Grain.MONTH: timedelta(days=31),
        }[self]


_MICROSECOND = timedelta(microseconds=1)
_PARTITION_FORMATS = {Grain.HOUR: "%Y-%m-%dT%H", Grain.DAY: "%Y-%m-%d", Grain.MONTH: "%Y-%m"}


def floor_to_bucket(instant: datetime, grain: Grain, tz: ZoneInfo) -> datetime:
    """The last bucket boundary at or before `instant`, in UTC. With no grain: the instant itself."""
    if grain is Grain.NONE:
        return instant.astimezone(UTC)
    if grain is Grain.HOUR:
        return instant.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    local = instant.astimezone(tz).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if grain is Grain.MONTH:
        local = local.replace(day=1)
    return local.astimezone(UTC)


def partition_at(instant: datetime, grain: Grain, tz: ZoneInfo) -> Interval:
    """The partition that holds `instant`; everything for a table without partitions."""
    if grain is Grain.NONE:
        return EVERYTHING
    start = floor_to_bucket(instant, grain, tz)
    return Interval(start, _next_boundary(start, grain, tz))


def partitions_within(span: Interval, grain: Grain, tz: ZoneInfo) -> Iterator[Interval]:
    """The partitions that meet `span`, in order."""
    if grain is Grain.NONE:
        yield EVERYTHING
        return
    partition = partition_at(span.start, grain, tz)
    while partition.start < span.end:
        yield partition
        partition = Interval(partition.end, _next_boundary(partition.end, grain, tz))


def expanded_by_grain(data: Interval, grain: Grain, tz: ZoneInfo) -> Interval:
    """The partitions that `data` meets and one more on each side; a day of 25 hours is one day. Open ends stay open."""
    if grain is Grain.NONE:
        return data
    start, end = data.start, data.end
    if start > BEGINNING:
        start = floor_to_bucket(floor_to_bucket(start, grain, tz) - _MICROSECOND, grain, tz)
    if end < FOREVER:
        end = _next_boundary(partition_at(end - _MICROSECOND, grain, tz).end, grain, tz)
    return Interval(start, end)


def partition_name(partition: Interval, grain: Grain, tz: ZoneInfo) -> str:
    """The value of the partition column, such as 2026-11-16; hours are named in UTC."""
    if grain is Grain.NONE:
        return ""
    zone = UTC if grain is Grain.HOUR else tz
    return partition.start.astimezone(zone).strftime(_PARTITION_FORMATS[grain])


def parse_partition_name(name: str, grain: Grain, tz: ZoneInfo) -> Interval:
    """The partition whose column value is `name`. Raises ValueError that says the form wanted."""
    if grain is Grain.NONE:
        return EVERYTHING
    try:
        local = datetime.strptime(name, _PARTITION_FORMATS[grain])  # noqa: DTZ007 - the zone is given below
    except ValueError:
        raise ValueError(
            f"{name!r} is not the name of a partition by {grain}: expected the form {_PARTITION_FORMATS[grain]}."
        ) from None
    return partition_at(local.replace(tzinfo=UTC if grain is Grain.HOUR else tz), grain, tz)


def shifted_partition(partition: Interval, shift: timedelta, grain: Grain, tz: ZoneInfo) -> Interval:
    """The partition that holds the local start of `partition` moved by `shift`: whole days on the wall clock, then hours.

    A week before a Monday is a Monday, and 9 o'clock stays 9 o'clock over a change of the clocks. Raises ValueError where
    there is no partition to move to: the table has none, or the start lies before all times.
    """
    if grain is Grain.NONE or partition.is_everything:
        raise ValueError("a table that is looked at as a whole has no earlier or later partition")
    hours = shift % timedelta(days=1)
    local = partition.start.astimezone(tz)
    try:
        moved = (local.replace(tzinfo=None) + (shift - hours)).replace(tzinfo=tz, fold=local.fold)
        start = moved.astimezone(UTC) + hours
        if start <= BEGINNING:
            raise OverflowError
    except OverflowError:
        raise ValueError(f"there is no partition {-shift.days} days before {local.date().isoformat()}") from None
    return partition_at(start, grain, tz)


def _next_boundary(start: datetime, grain: Grain, tz: ZoneInfo) -> datetime:
    if grain is Grain.HOUR:
        return start + timedelta(hours=1)
    local = start.astimezone(tz)
    # The middle of the next day (or a day of the next month) floors back onto the boundary, whatever the clocks do.
    ahead = local.replace(tzinfo=None) + (timedelta(days=32) if grain is Grain.MONTH else timedelta(days=1, hours=12))
    return floor_to_bucket(ahead.replace(tzinfo=tz), grain, tz)
