"""Is a value out of the ordinary? A robust z-score against the past values that the calendar makes comparable.

Compared are the same weekdays (of hours: the same hour of the same weekday; of months: the same month of the year), or a
wider cohort where too few are known. The baseline is their median, the spread their median absolute deviation times
1.4826, which is the standard deviation of what is normal (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993):
half of the past may have been wrong without moving it. What was part of a confirmed incident is left out, and so is the
value under test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from zoneinfo import ZoneInfo

from lakehub.kernel.calendar import Grain
from lakehub.kernel.interval import Interval
from quality.domain.expression.kinds import Kind

FEWEST = 4
"""Fewer comparable values say nothing."""
CONSISTENT = 1.4826
"""Makes the median absolute deviation of normal values their standard deviation."""
STEADY = 0.01
"""A series that never moved is still allowed to move: the spread is at least this share of the center ..."""
LEAST_SPREAD: Mapping[Kind, float] = {Kind.COUNT: 1.0, Kind.RATIO: 0.001, Kind.DURATION: 60.0, Kind.NUMBER: 0.0}
"""... and at least this (durations in seconds), so that one null in a column that had none is no alarm."""
HIGHEST = 1e6
"""The score of what differs from a series without any spread."""
USUAL = 4
"""The score up to which the band is shown; tests usually say `deviation(...) < 4`."""
LONGEST = timedelta(weeks=160)


@dataclass(frozen=True)
class Point:
    """What was measured of the partition that starts at `at`; None: nothing, and `why` says so."""

    at: datetime
    value: float | None
    why: str = ""


@dataclass(frozen=True)
class Baseline:
    """How far `value` is from what is usual, in spreads, and what that was worked out from."""

    value: float
    center: float
    spread: float
    cohort: str
    used: tuple[Point, ...]
    left_out: tuple[Point, ...]
    """The comparable points that do not count, each with its `why`."""

    @property
    def score(self) -> float:
        """The distance from the center in spreads; never negative."""
        distance = abs(self.value - self.center)
        if not distance:
            return 0.0
        return min(HIGHEST, distance / self.spread) if self.spread else HIGHEST

    def band(self, score: float = USUAL) -> tuple[float, float]:
        """What lies within `score` spreads of the center."""
        return self.center - score * self.spread, self.center + score * self.spread


@dataclass(frozen=True)
class TooFew:
    """There is no baseline: `used` points are known of the widest cohort."""

    used: int
    left_out: tuple[Point, ...] = ()

    def __str__(self) -> str:
        dropped = f", {len(self.left_out)} were left out" if self.left_out else ""
        return f"{self.used} past values are known{dropped}; {FEWEST} are needed"


def shifts(window: timedelta, grain: Grain = Grain.DAY) -> tuple[timedelta, ...]:
    """How far back the points of a window lie, nearest first: whole days, so that hours keep their place on the clock.

    Months are met in their middle, whichever lengths they have: the partition that holds the start so shifted is meant.
    """
    if grain is Grain.MONTH:
        count = round(min(window, LONGEST) / timedelta(days=30.44))
        return tuple(-timedelta(days=round(30.44 * number - 15)) for number in range(1, count + 1))
    return tuple(-timedelta(days=number) for number in range(1, min(window, LONGEST).days + 1))


def baseline(
    value: float,
    at: datetime,
    past: Iterable[Point],
    *,
    grain: Grain,
    zone: ZoneInfo,
    excluded: Sequence[Interval] = (),
    kind: Kind = Kind.NUMBER,
) -> Baseline | TooFew:
    """The baseline for `value` of the partition that starts at `at`, from the narrowest cohort with enough points.

    `past` may hold the same partition more than once, and the one under test: neither counts. `excluded`: the ranges of
    confirmed incidents. Durations are seconds.
    """
    points = sorted({point.at: point for point in past if point.at < at}.values(), key=lambda point: point.at)
    judged = [_judged(point, excluded) for point in points]
    known = 0
    for cohort in COHORTS[grain]:
        same = cohort.key(at.astimezone(zone))
        alike = [point for point in judged if cohort.key(point.at.astimezone(zone)) == same]
        used = [point for point in alike if point.value is not None and not point.why]
        known = len(used)
        if known >= FEWEST:
            left_out = tuple(point for point in alike if point.why)
            return _around(value, used, left_out, cohort.named(at.astimezone(zone)), kind)
    return TooFew(known, tuple(point for point in judged if point.why))


def _judged(point: Point, excluded: Sequence[Interval]) -> Point:
    if point.value is None:
        return Point(point.at, None, point.why or "nothing was measured")
    if any(span.contains(point.at) for span in excluded):
        return Point(point.at, point.value, "part of an incident")
    return point


def _around(value: float, used: Sequence[Point], left_out: tuple[Point, ...], cohort: str, kind: Kind) -> Baseline:
    values = [point.value for point in used if point.value is not None]
    center = median(values)
    deviation = median(abs(one - center) for one in values)
    spread = max(CONSISTENT * deviation, STEADY * abs(center), LEAST_SPREAD.get(kind, 0.0))
    return Baseline(value, center, spread, cohort, tuple(used), left_out)


# Cohorts: narrowest first


@dataclass(frozen=True)
class Cohort:
    """Points with the same key are comparable; `named` says which they are, both by local time."""

    key: Callable[[datetime], object]
    named: Callable[[datetime], str]


def _is_weekend(local: datetime) -> bool:
    return local.weekday() >= 5


def _days(local: datetime) -> str:
    return "days of the weekend" if _is_weekend(local) else "workdays"


_SAME_WEEKDAY = Cohort(lambda local: local.weekday(), lambda local: f"{local:%A}s")
_WORKDAYS = Cohort(_is_weekend, _days)
_SAME_WEEKDAY_HOUR = Cohort(lambda local: (local.weekday(), local.hour), lambda local: f"{local:%A}s at {local:%H}:00")
_WORKDAYS_HOUR = Cohort(
    lambda local: (_is_weekend(local), local.hour), lambda local: f"{_days(local)} at {local:%H}:00"
)
_SAME_HOUR = Cohort(lambda local: local.hour, lambda local: f"days at {local:%H}:00")
_SAME_MONTH = Cohort(lambda local: local.month, lambda local: f"months of {local:%B}")
_MONTH_OF_QUARTER = Cohort(
    lambda local: local.month % 3, lambda local: f"months in the place of {local:%B} in the quarter"
)


def _all(what: str) -> Cohort:
    return Cohort(lambda local: None, lambda local: f"all {what}")


COHORTS: Mapping[Grain, tuple[Cohort, ...]] = {
    Grain.NONE: (_all("points"),),
    Grain.HOUR: (_SAME_WEEKDAY_HOUR, _WORKDAYS_HOUR, _SAME_HOUR, _all("hours")),
    Grain.DAY: (_SAME_WEEKDAY, _WORKDAYS, _all("days")),
    Grain.MONTH: (_SAME_MONTH, _MONTH_OF_QUARTER, _all("months")),
}


# For people


def explained(found: Baseline, shown: Callable[[float], str] = "{:,.6g}".format) -> dict[str, str]:
    """The band and where it comes from, in words: for the facts of a result. `shown` writes a value of the series."""
    low, high = found.band()
    facts = {
        "usual": f"{shown(found.center)}, from {shown(low)} to {shown(high)} within {USUAL} spreads of {shown(found.spread)}",
        "compared with": f"the last {len(found.used)} {found.cohort}",
    }
    if found.left_out:
        facts["left out"] = "; ".join(f"{point.at:%Y-%m-%d %H:%M} UTC: {point.why}" for point in found.left_out)
    return facts
