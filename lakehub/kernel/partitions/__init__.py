"""Partitions as calendar intervals of a time zone, from hours to years: a day has 23 or 25 hours twice a year.

Days and what is wider begin where the local date begins; a date that a zone skipped is no partition. An hour is the time over
which the clock shows one hour with one offset: where clocks go back, the hour that comes twice is two partitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval
from lakehub.kernel.partitions.patterns import TimePattern


class Grain(StrEnum):
    """How wide one partition is, the finest first. NONE: the table is one piece."""

    NONE = "none"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"

    @property
    def width(self) -> timedelta:
        """The nominal width, to grow a range by one grain."""
        return _WIDTHS[self]

    def nests_in(self, larger: Grain) -> bool:
        """Each partition of this grain lies in one of `larger`: all do in what is wider, but weeks in no months."""
        if Grain.NONE in (self, larger):
            return larger is Grain.NONE
        return self is larger or (_WIDTHS[self] < _WIDTHS[larger] and self is not Grain.WEEK)


_WIDTHS = {
    Grain.NONE: timedelta(),
    Grain.HOUR: timedelta(hours=1),
    Grain.DAY: timedelta(days=1),
    Grain.WEEK: timedelta(days=7),
    Grain.MONTH: timedelta(days=31),
    Grain.QUARTER: timedelta(days=92),
    Grain.YEAR: timedelta(days=366),
}
_HOUR = timedelta(hours=1)
_SECOND = timedelta(seconds=1)
_MICROSECOND = timedelta(microseconds=1)
NAME_PATTERNS = {
    Grain.HOUR: TimePattern("%Y-%m-%dT%H"),
    Grain.DAY: TimePattern("%Y-%m-%d"),
    Grain.WEEK: TimePattern("%G-W%V"),
    Grain.MONTH: TimePattern("%Y-%m"),
    Grain.QUARTER: TimePattern("%Y-Q%q"),
    Grain.YEAR: TimePattern("%Y"),
}
"""How partitions are named in local time. The second of two hours has its offset behind: 2026-10-25T02+0100."""
_HOUR_AND_OFFSET = re.compile(r"(.+T\d\d)([+-])(\d\d)(\d\d)(\d\d)?", re.ASCII)


def why_not_summed(grain: Grain, zone: ZoneInfo, larger: Grain, larger_zone: ZoneInfo) -> str:
    """Why partitions by `grain` do not add up to those by `larger`; empty where they do. Hours of another zone may."""
    if grain.nests_in(larger) and (zone.key == larger_zone.key or larger is Grain.NONE or grain is Grain.HOUR):
        return ""
    if grain is Grain.NONE:
        return f"it has no partitions, and these are by {larger}"
    if grain.nests_in(larger):
        return f"its partitions are by {grain} in {zone.key}, and these are by {larger} in {larger_zone.key}"
    return f"its partitions are by {grain}, which do not add up to those by {larger} here"


def floor_to_bucket(instant: datetime, grain: Grain, tz: ZoneInfo) -> datetime:
    """The last bucket boundary at or before `instant`, in UTC. With no grain: the instant itself."""
    return instant.astimezone(UTC) if grain is Grain.NONE else partition_at(instant, grain, tz).start


def partition_at(instant: datetime, grain: Grain, tz: ZoneInfo) -> Interval:
    """The partition that holds `instant`; everything for a table without partitions."""
    if grain is Grain.NONE:
        return EVERYTHING
    instant = instant.astimezone(UTC)
    if grain is Grain.HOUR:
        return _hour_at(instant, tz)
    first = _first_day(instant.astimezone(tz).date(), grain)
    following = _next_first_day(first, grain)
    if _start_of_day(following, tz) <= instant:  # the clocks went back over midnight: the next date has begun
        first, following = following, _next_first_day(following, grain)
    return Interval(_start_of_day(first, tz), _start_of_day(following, tz))


def partition_of_local(local: datetime, grain: Grain, tz: ZoneInfo) -> Interval:
    """The partition that holds a time that a local clock shows; of an hour that comes twice the first. Raises ValueError."""
    if grain is Grain.NONE:
        return EVERYTHING
    if grain is Grain.HOUR:
        hours = _hours_shown(local.replace(minute=0, second=0, microsecond=0), tz)
        if not hours:
            raise ValueError(f"{local:%Y-%m-%d %H}:00 does not exist in {tz.key}: the clocks were put forward over it")
        return hours[0]
    first = _first_day(local.date(), grain)
    start, end = _start_of_day(first, tz), _start_of_day(_next_first_day(first, grain), tz)
    if start >= end:
        raise ValueError(f"{local.date().isoformat()} does not exist in {tz.key}: the calendar skipped it")
    return Interval(start, end)


def partitions_within(span: Interval, grain: Grain, tz: ZoneInfo) -> Iterator[Interval]:
    """The partitions that meet `span`, in order."""
    if grain is Grain.NONE:
        yield EVERYTHING
        return
    partition = partition_at(span.start, grain, tz)
    while partition.start < span.end:
        yield partition
        partition = partition_at(partition.end, grain, tz)


def expanded_by_grain(data: Interval, grain: Grain, tz: ZoneInfo) -> Interval:
    """The partitions that `data` meets and one more on each side; a day of 25 hours is one day. Open ends stay open."""
    if grain is Grain.NONE:
        return data
    start, end = data.start, data.end
    if start > BEGINNING:
        start = floor_to_bucket(floor_to_bucket(start, grain, tz) - _MICROSECOND, grain, tz)
    if end < FOREVER:
        end = partition_at(partition_at(end - _MICROSECOND, grain, tz).end, grain, tz).end
    return Interval(start, end)


def partition_name(partition: Interval, grain: Grain, tz: ZoneInfo) -> str:
    """The name of the partition in local time, such as 2026-11-16."""
    if grain is Grain.NONE:
        return ""
    local = partition.start.astimezone(tz)
    name = NAME_PATTERNS[grain].format(local)
    if grain is Grain.HOUR and is_later_of_two_hours(partition, tz):
        return f"{name}{local:%z}"
    return name


def parse_partition_name(name: str, grain: Grain, tz: ZoneInfo) -> Interval:
    """The partition whose name is `name`. Raises ValueError that says the form wanted."""
    if grain is Grain.NONE:
        return EVERYTHING
    return within_known_years(name, lambda: _parse_name(name, grain, tz))


def within_known_years(raw: str, partition_of: Callable[[], Interval]) -> Interval:
    """Raises ValueError where `raw` stands for no partition that times can be counted with, such as 9999-12-31 or 0001-01-01."""
    try:
        partition = partition_of()
    except OverflowError:  # there is no day after it, or before it
        partition = None
    if partition is None or partition.start < BEGINNING or partition.end > FOREVER:
        raise ValueError(f"{raw!r} lies outside the years 1900 to 9998")
    return partition


def _parse_name(name: str, grain: Grain, tz: ZoneInfo) -> Interval:
    pattern = NAME_PATTERNS[grain]
    hour_and_offset = _HOUR_AND_OFFSET.fullmatch(name) if grain is Grain.HOUR else None
    try:
        local = pattern.parse(hour_and_offset.group(1) if hour_and_offset else name)
    except ValueError:
        raise ValueError(
            f"{name!r} is not the name of a partition by {grain}: expected the form {pattern.text}."
        ) from None
    if hour_and_offset is None:
        return partition_of_local(local, grain, tz)
    sign, *numbers = hour_and_offset.groups(default="0")[1:]
    hours, minutes, seconds = map(int, numbers)
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return hour_with_offset(local, -offset if sign == "-" else offset, tz)


def hour_with_offset(local: datetime, offset: timedelta, tz: ZoneInfo) -> Interval:
    """The hour that a local clock shows while it is `offset` ahead of UTC. Raises ValueError where it never does."""
    for hour in _hours_shown(local, tz):
        if _offset(hour.start, tz) == offset:
            return hour
    raise ValueError(f"{local:%Y-%m-%d %H}:00 does not exist in {tz.key} at {offset} from UTC")


def is_later_of_two_hours(hour: Interval, tz: ZoneInfo) -> bool:
    """The clocks went back, and have shown this hour before."""
    local = hour.start.astimezone(tz)
    if not local.fold and not local.minute and not local.second:
        return False
    return _hours_shown(local.replace(tzinfo=None, minute=0, second=0, microsecond=0, fold=0), tz)[0] != hour


def local_bounds(partition: Interval, grain: Grain, tz: ZoneInfo) -> tuple[datetime, datetime]:
    """`[start, end)` as a local clock shows the partition, without a zone. Two hours that show the same have the same bounds."""
    local = partition.start.astimezone(tz).replace(tzinfo=None, minute=0, second=0, microsecond=0, fold=0)
    if grain is Grain.HOUR:
        return local, local + _HOUR
    first = _first_day(local.date(), grain)
    return _midnight(first), _midnight(_next_first_day(first, grain))


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


# Days, weeks, months, quarters and years: of whole dates


def _first_day(day: date, grain: Grain) -> date:
    if grain is Grain.DAY:
        return day
    if grain is Grain.WEEK:
        return day - timedelta(days=day.weekday())
    if grain is Grain.YEAR:
        return day.replace(month=1, day=1)
    return day.replace(month=day.month if grain is Grain.MONTH else (day.month - 1) // 3 * 3 + 1, day=1)


def _next_first_day(first: date, grain: Grain) -> date:
    """Raises OverflowError at the end of the calendar."""
    return _first_day(first + _WIDTHS[grain], grain)


@lru_cache(maxsize=8192)
def _start_of_day(day: date, tz: ZoneInfo) -> datetime:
    """The first instant, in UTC, at which the local clock shows this date or a later one."""
    start = _midnight(day).replace(tzinfo=tz).astimezone(UTC)
    if start.astimezone(tz).replace(tzinfo=None) == _midnight(day):
        return start
    # The clocks were put forward over midnight: the date begins when they were.
    return _change_of_offset(_midnight(day).replace(tzinfo=tz, fold=1).astimezone(UTC), start, tz)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)  # noqa: DTZ001 - the zone is given where there is one


# Hours


def _hour_at(instant: datetime, tz: ZoneInfo) -> Interval:
    """The longest time around `instant` in which the clock shows one hour and has one offset."""
    local = instant.astimezone(tz)
    past = timedelta(minutes=local.minute, seconds=local.second, microseconds=local.microsecond)
    start = instant - past
    end = start + _HOUR
    if _offset(start, tz) != _offset(instant, tz):
        start = _change_of_offset(start, instant, tz)
    if _offset(end - _MICROSECOND, tz) != _offset(instant, tz):
        end = _change_of_offset(instant, end, tz)
    return Interval(start, end)


def _hours_shown(shown: datetime, tz: ZoneInfo) -> list[Interval]:
    """The hours over which the clock shows the hour `shown`: one, two where it was put back, none where it was put forward."""
    plain = shown.replace(tzinfo=UTC)
    offsets = {_offset(plain + days, tz) for days in (-timedelta(days=1), timedelta(days=1))}
    ends = (at for offset in offsets for at in (plain - offset, plain - offset + _HOUR - _MICROSECOND))
    hours = {_hour_at(at, tz) for at in ends}
    return sorted(
        hour
        for hour in hours
        if hour.start.astimezone(tz).replace(tzinfo=None, minute=0, second=0, microsecond=0, fold=0) == shown
    )


def _offset(instant: datetime, tz: ZoneInfo) -> timedelta:
    offset = instant.astimezone(tz).utcoffset()
    assert offset is not None
    return offset


def _change_of_offset(before: datetime, after: datetime, tz: ZoneInfo) -> datetime:
    """The instant in `(before, after]` from which the offset is the one at `after`; clocks are changed at whole seconds."""
    base = before.replace(microsecond=0)
    low, high = 0, -((base - after) // _SECOND)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(base + middle * _SECOND, tz) == _offset(before, tz):
            low = middle
        else:
            high = middle
    return base + high * _SECOND


@lru_cache(maxsize=64)
def offset_changes(tz: ZoneInfo) -> tuple[tuple[datetime, int], ...]:
    """Since when the zone is how many seconds ahead of UTC, from 1970 to 2037, the newest first: for what knows no zones."""
    week, end = timedelta(days=7), datetime(2038, 1, 1, tzinfo=UTC)
    before = datetime(1970, 1, 1, tzinfo=UTC)
    changes = [(BEGINNING, _offset(before, tz))]
    while before < end:
        after = before + week
        if _offset(after, tz) != _offset(before, tz):
            changes.append((_change_of_offset(before, after, tz), _offset(after, tz)))
        before = after
    return tuple((instant, int(offset.total_seconds())) for instant, offset in reversed(changes))
