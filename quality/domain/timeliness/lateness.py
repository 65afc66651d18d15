"""The freshness rule: up to where is the data complete, and how long ago should the next bucket have been?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, floor_to_bucket, parse_partition_name, partition_at, partitions_within
from quality.domain.timeliness.production_calendar import ProductionCalendar

COMPLETE_SHARE = Fraction(999, 1000)


def complete_until(
    own_rows: Mapping[datetime, int],
    upstream_rows: Mapping[datetime, int],
    *,
    grain: Grain,
    zone: ZoneInfo,
    since: datetime | None,
    now: datetime,
    produced: ProductionCalendar | None = None,
) -> datetime | None:
    """c: the greatest bucket boundary at or before now before which every bucket is at least 99.9% complete.

    `own_rows` and `upstream_rows` are rows by the start of their bucket; history starts at `since`, or where upstream does.
    A bucket that is not produced counts as complete. None where upstream has no rows: nothing to compare with.
    """
    upstream_starts = [start for start, rows in upstream_rows.items() if rows and (since is None or start >= since)]
    if not upstream_starts:
        return None
    begin = floor_to_bucket(since or min(upstream_starts), grain, zone)
    end = floor_to_bucket(now, grain, zone)
    if end <= begin:
        return begin
    for bucket in partitions_within(Interval(begin, end), grain, zone):
        lacking = own_rows.get(bucket.start, 0) < COMPLETE_SHARE * upstream_rows.get(bucket.start, 0)
        if lacking and (produced is None or produced.expects(bucket)):
            return bucket.start
    return end


def complete_until_latest(
    latest: datetime, *, grain: Grain, zone: ZoneInfo, now: datetime, produced: ProductionCalendar | None = None
) -> datetime:
    """c where all that is known is the latest event, or the latest commit: the bucket that holds it may be going on.

    A bucket after which none is produced has no later event to show that it is complete: it counts as complete once it
    ended, and so do those that are not produced. Without buckets c is the event; what is next produced is due then.
    """
    c = floor_to_bucket(min(latest, now), grain, zone)
    if produced is None or grain is Grain.NONE:
        return c
    bucket = partition_at(c, grain, zone)
    following = partition_at(bucket.end, grain, zone)
    if bucket.end <= now and not produced.expects(following):
        bucket = following
    while bucket.end <= now and not produced.expects(bucket):
        bucket = partition_at(bucket.end, grain, zone)
    return bucket.start


def lateness(
    c: datetime, *, grain: Grain, zone: ZoneInfo, now: datetime, produced: ProductionCalendar | None = None
) -> timedelta:
    """How long ago the first bucket that is not complete ended; zero while it has not.

    `c >= floor_to_bucket(N - SLA)` holds if and only if this is below the SLA (with no grain: at most the SLA).
    Without buckets, but with a calendar, the first time after c at which data is produced takes the place of c.
    """
    if grain is Grain.NONE:
        due = produced.next_after(c) if produced is not None else None
        return max(timedelta(), now - (due or c))
    return max(timedelta(), now - partition_at(c, grain, zone).end)


def rows_by_bucket(rows: Mapping[str | None, int], *, grain: Grain, zone: ZoneInfo) -> dict[datetime, int]:
    """Rows by the start of their partition, from rows by its name. Rows without a partition belong to no bucket."""
    return {parse_partition_name(name, grain, zone).start: count for name, count in rows.items() if name is not None}
