"""Quiet hours and digests: wall-clock times of a zone as instants, whatever its clocks do twice a year.

A wall-clock time that is skipped stands for the instant at which the clocks jump. Of one that comes twice, quiet hours
begin at the first and end at the last.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import Interval

_DAY = timedelta(days=1)
_INSTANT = timedelta(microseconds=1)
ALL_DAYS = frozenset(range(7))


@dataclass(frozen=True)
class QuietHours:
    """From `start` to `end` on the wall clock of `zone`, beginning on these days (Monday is 0).

    An end that is not after the start lies on the next day, so the same time twice is 24 hours.
    """

    start: time
    end: time
    zone: ZoneInfo
    days: frozenset[int] = ALL_DAYS

    @property
    def is_always(self) -> bool:
        return self.start == self.end and self.days == ALL_DAYS

    def end_at(self, at: datetime) -> datetime | None:
        """When the quiet hours that hold `at` are over, those that follow at once included; None: it is not quiet."""
        over = at
        for _ in range(2 * len(ALL_DAYS)):
            nights = (self._of(over.astimezone(self.zone).date() - days * _DAY) for days in (0, 1))
            ends = [night.end for night in nights if night is not None and night.contains(over)]
            if not ends:
                break
            over = max(ends)
        return None if over == at else over

    def _of(self, day: date) -> Interval | None:
        """Those that begin on `day`; none where the clocks jump over them."""
        if day.weekday() not in self.days:
            return None
        last = day if self.end > self.start else day + _DAY
        start = first_instant(datetime.combine(day, self.start), self.zone)
        end = last_instant(datetime.combine(last, self.end), self.zone)
        return Interval(start, end) if start < end else None


class DigestInterval(StrEnum):
    NONE = "none"
    HOURLY = "hourly"
    DAILY = "daily"


def next_digest_at(instant: datetime, kind: DigestInterval, *, at: time, zone: ZoneInfo) -> datetime:
    """When the digest goes out that holds what was collected at `instant`: the next full hour, or the next `at`."""
    if kind is DigestInterval.HOURLY:
        return instant.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    today = instant.astimezone(zone).date()
    slots = (first_instant(datetime.combine(today + days * _DAY, at), zone) for days in range(3))
    return next(slot for slot in slots if slot > instant)


def first_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first instant at which the clocks of `zone` show `wall` or jump over it, in UTC."""
    shown = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if _wall(shown, zone) == wall:
        return shown
    return _jump(wall.replace(tzinfo=zone, fold=1).astimezone(UTC), shown, wall, zone)


def last_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """The last instant at which the clocks reach `wall`, or jump over it; not the one at which they are set back to it."""
    again = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    is_reached = _wall(again, zone) == wall and _wall(again - _INSTANT, zone) < wall
    return again if is_reached else first_instant(wall, zone)


def _wall(instant: datetime, zone: ZoneInfo) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def _jump(before: datetime, after: datetime, wall: datetime, zone: ZoneInfo) -> datetime:
    """The instant in (before, after] at which the clocks jump over `wall`."""
    while after - before > _INSTANT:
        middle = before + (after - before) / 2
        if _wall(middle, zone) < wall:
            before = middle
        else:
            after = middle
    return after
