"""Which partitions of a copy are tested: those that hold rows, whatever their age, and the empty ones among which rows are expected.

Holes are between data that belongs together: the newest run of it. More than `max_gap` expected partitions without rows end that run, so
that one row of 1970 does not make a hole of each day since. What lies before is tested where it holds rows; of the gap the gate says
`never_tested`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, partition_at, partitions_within
from quality.domain.timeliness.production_calendar import ProductionCalendar

MAX_PARTITIONS = 800
"""So many partitions that hold rows are tested, the newest; of what lies before them the gate says `unmonitored`."""
_TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class History:
    """`partitions` are tested, in order; `since` is where the oldest that is there starts (None: none is there)."""

    since: datetime | None
    partitions: tuple[Interval, ...]


def history_of(
    rows: Mapping[Interval, int], *, grain: Grain, zone: ZoneInfo, produced: ProductionCalendar | None, now: datetime
) -> History:
    """The newest partitions that hold rows, and where partitions are produced the holes between them, back to the first wide gap.

    What is missing after the last of them is freshness, and no hole. `rows` are those of all the partitions that are there,
    empty ones too, on the copy or on what it is compared with.
    """
    there = sorted(partition for partition in rows if partition.start <= now)
    newest = [partition for partition in there if rows[partition]][-MAX_PARTITIONS:]
    if not newest:
        return History(there[0].start if there else None, ())
    since = there[0].start if len(newest) < MAX_PARTITIONS else newest[0].start
    gaps = zip(reversed(newest), [*(partition.end for partition in reversed(newest[:-1])), since], strict=True)
    holes: list[Interval] = []
    for partition, before in gaps:
        gap = holes_before(partition, before, grain=grain, zone=zone, produced=produced)
        missing = list(islice(gap, max_gap(grain) + 1))
        if len(missing) > max_gap(grain):
            break
        holes += missing
    return History(since, tuple(sorted({*newest, *holes[:MAX_PARTITIONS]})))


def max_gap(grain: Grain) -> int:
    """So many expected partitions in a row without rows are holes; more of them are no part of the history."""
    return 30 * 24 if grain is Grain.HOUR else 30


def holes_before(
    partition: Interval, since: datetime, *, grain: Grain, zone: ZoneInfo, produced: ProductionCalendar | None
) -> Iterator[Interval]:
    """The partitions from `since` up to `partition` that are produced, the nearest first; those that hold rows too."""
    while partition.start > since:
        partition = partition_at(partition.start - _TICK, grain, zone)
        if produced is None or produced.expects(partition):
            yield partition


def partitions_from(
    begin: datetime, until: datetime, *, grain: Grain, zone: ZoneInfo, produced: ProductionCalendar | None
) -> Iterator[Interval]:
    """Those that are produced from `begin` up to the one that holds `until`. The next one that is produced is always among
    them: its first run plans what follows."""
    end, last = partition_at(until, grain, zone).end, None
    if begin >= end:
        return
    for partition in partitions_within(Interval(begin, end), grain, zone):
        if produced is None or produced.expects(partition):
            yield (last := partition)
    if produced is not None and (last is None or last.end < end):
        ahead = partitions_within(Interval(end, end + _MAX_LOOKAHEAD), grain, zone)
        yield from islice((partition for partition in ahead if produced.expects(partition)), 1)


_MAX_LOOKAHEAD = timedelta(days=400)
"""A calendar that expects nothing for longer is planned again when something is committed, or its tests change."""
