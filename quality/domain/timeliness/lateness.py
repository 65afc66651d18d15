"""The freshness rule: where is the front of the data, and how long ago should the next bucket have been there?"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo

from lakehub.kernel.partitions import Grain, floor_to_bucket, parse_partition_name, partition_at
from quality.domain.timeliness.production_calendar import ProductionCalendar

COMPLETE_SHARE = Fraction(999, 1000)
_TICK = timedelta(microseconds=1)


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
    """c: the end of the latest bucket, of those that ended, that has at least 99.9% of upstream's rows.

    A hole before it is completeness of that bucket, and of that bucket only. `own_rows` and `upstream_rows` are rows by the
    start of their bucket; history starts at `since`, or where upstream does. A bucket of which upstream has no rows lacks
    nothing, nor does one that is not produced. Where none is complete, c is where history starts. None where upstream has
    no rows: nothing to compare with.
    """
    upstream_starts = [start for start, rows in upstream_rows.items() if rows and (since is None or start >= since)]
    if not upstream_starts:
        return None
    begin = floor_to_bucket(since or min(upstream_starts), grain, zone)
    c = floor_to_bucket(now, grain, zone)
    while c > begin:
        bucket = partition_at(c - _TICK, grain, zone)
        lacks_rows = own_rows.get(bucket.start, 0) < COMPLETE_SHARE * upstream_rows.get(bucket.start, 0)
        if not lacks_rows or (produced is not None and not produced.expects(bucket)):
            break
        c = bucket.start
    return max(c, begin)


def complete_until_latest(
    latest: datetime, *, grain: Grain, zone: ZoneInfo, now: datetime, produced: ProductionCalendar | None = None
) -> datetime:
    """c where there is nothing to compare with: the end of the bucket that holds the latest rows, of those that ended.

    `latest` is a time in it, at or before now. Buckets after it that ended and are not produced lack nothing. Without
    buckets c is the latest event itself.
    """
    if grain is Grain.NONE:
        return min(latest, now)
    c = floor_to_bucket(min(partition_at(latest, grain, zone).end, now), grain, zone)
    while produced is not None and not produced.expects(bucket := partition_at(c, grain, zone)) and bucket.end <= now:
        c = bucket.end
    return c


def late_from(c: datetime, *, grain: Grain, zone: ZoneInfo, produced: ProductionCalendar | None = None) -> datetime:
    """From when on the data is late: the end of the bucket that is due, the first after c.

    Without buckets c itself; with a calendar, the first time after c at which data is produced.
    """
    if grain is Grain.NONE:
        return (produced.next_after(c) if produced is not None else None) or c
    return partition_at(c, grain, zone).end


def lateness(
    c: datetime, *, grain: Grain, zone: ZoneInfo, now: datetime, produced: ProductionCalendar | None = None
) -> timedelta:
    """How long the data has been late; zero while it is not.

    `c >= floor_to_bucket(N - SLA)` holds if and only if this is below the SLA (with no grain: at most the SLA).
    """
    return max(timedelta(), now - late_from(c, grain=grain, zone=zone, produced=produced))


def rows_by_bucket(rows: Mapping[str | None, int], *, grain: Grain, zone: ZoneInfo) -> dict[datetime, int]:
    """Rows by the start of their partition, from rows by its name. Rows whose value is no partition belong to no bucket: they
    are a finding (ingestion.lake.misplaced_rows)."""
    by_bucket: dict[datetime, int] = {}
    for name, count in rows.items():
        with suppress(ValueError):
            by_bucket[parse_partition_name(name or "", grain, zone).start] = count
    return by_bucket
