"""Partitions as a wall clock shows them, found by looking at it every quarter of an hour: slow, and without Lakehub's code."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import groupby
from zoneinfo import ZoneInfo

QUARTER_HOUR = timedelta(minutes=15)
"""Clocks are put forward and back, and days begin, at such times, in every zone that is used here."""
WIDTHS = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "month": timedelta(days=31),
    "quarter": timedelta(days=92),
}
"""At most so wide, but for the hour by which clocks are put back."""


@dataclass(frozen=True, order=True)
class Period:
    """`[start, end)`; `local` is the time with which it begins by its name, `again` where the clock showed that hour before."""

    start: datetime
    end: datetime
    local: datetime
    again: timedelta | None = None
    """How far the clock is ahead of UTC in the second of two hours with one name."""

    def holds(self, at: datetime) -> bool:
        return self.start <= at < self.end


@lru_cache(maxsize=256)
def periods(grain: str, zone: str, since: datetime, until: datetime) -> tuple[Period, ...]:
    """Those that meet `[since, until)`, in order."""
    margin = WIDTHS[grain] + 2 * timedelta(hours=1)
    start, tz = _floor(since - margin), ZoneInfo(zone)
    steps = int((until + margin - start) / QUARTER_HOUR)
    clock = ((at, at.astimezone(tz)) for at in (start + step * QUARTER_HOUR for step in range(steps)))
    whole: list[Period] = []
    shown = set[datetime]()
    for (local, offset), together in groupby(clock, key=lambda look: _name(look[1], grain)):
        instants = [at for at, _ in together]
        again = offset if local in shown else None
        shown.add(local)
        whole.append(Period(instants[0], instants[-1] + QUARTER_HOUR, local, again))
    return tuple(period for period in whole[1:-1] if period.start < until and period.end > since)


def period_at(grain: str, zone: str, at: datetime) -> Period:
    return next(period for period in periods(grain, zone, at, at + QUARTER_HOUR) if period.holds(at))


def _floor(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _name(at: datetime, grain: str) -> tuple[datetime, timedelta | None]:
    """What the period is called by a local clock; of hours with how far that clock is ahead."""
    plain = at.replace(tzinfo=None, fold=0)
    if grain == "hour":
        return plain.replace(minute=0), at.utcoffset()
    day = plain.replace(hour=0, minute=0)
    if grain == "week":
        day -= timedelta(days=day.weekday())
    if grain in ("month", "quarter"):
        day = day.replace(day=1, month=day.month if grain == "month" else (day.month - 1) // 3 * 3 + 1)
    return day, None
