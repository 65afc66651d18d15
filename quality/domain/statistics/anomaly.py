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

from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain
from quality.domain.value_types import ValueType

MIN_POINTS = 4
"""Fewer comparable values say nothing."""
MAD_TO_SIGMA = 1.4826
"""Makes the median absolute deviation of normal values their standard deviation."""
MIN_RELATIVE_SPREAD = 0.01
"""A series that never moved is still allowed to move: the spread is at least this share of the center ..."""
MIN_SPREAD: Mapping[ValueType, float] = {
    ValueType.COUNT: 1.0,
    ValueType.RATIO: 0.001,
    ValueType.DURATION: 60.0,
    ValueType.NUMBER: 0.0,
}
"""... and at least this (durations in seconds), so that one null in a column that had none is no alarm."""
MAX_SCORE = 1e6
"""The score of what differs from a series without any spread."""
BAND_SCORE = 4
"""The score up to which the band is shown; tests usually say `deviation(...) < 4`."""
MAX_WINDOW = timedelta(weeks=160)


@dataclass(frozen=True)
class Point:
    """What was measured of the partition that starts at `at`; None: nothing, and `reason` says why."""

    at: datetime
    value: float | None
    reason: str = ""


@dataclass(frozen=True)
class Baseline:
    """How far `value` is from what is usual, in spreads, and what that was worked out from."""

    value: float
    center: float
    spread: float
    cohort: str
    points: tuple[Point, ...]
    excluded: tuple[Point, ...]
    """The comparable points that do not count, each with its `reason`."""

    @property
    def score(self) -> float:
        """The distance from the center in spreads; never negative."""
        distance = abs(self.value - self.center)
        if not distance:
            return 0.0
        return min(MAX_SCORE, distance / self.spread) if self.spread else MAX_SCORE

    def band(self, score: float = BAND_SCORE) -> tuple[float, float]:
        """What lies within `score` spreads of the center."""
        return self.center - score * self.spread, self.center + score * self.spread


@dataclass(frozen=True)
class TooFewPoints:
    """There is no baseline: `known_points` are known of the widest cohort."""

    known_points: int
    excluded: tuple[Point, ...] = ()

    def __str__(self) -> str:
        dropped = f", {len(self.excluded)} were left out" if self.excluded else ""
        return f"{self.known_points} past values are known{dropped}; {MIN_POINTS} are needed"


_MEAN_LENGTHS = {Grain.WEEK: 7.0, Grain.MONTH: 30.44, Grain.QUARTER: 91.31, Grain.YEAR: 365.25}
"""In days, of what is wider than a day."""


def window_shifts(window: timedelta, grain: Grain = Grain.DAY) -> tuple[timedelta, ...]:
    """How far back the points of a window lie, nearest first: whole days, so that hours keep their place on the clock.

    Weeks and what is wider are met in their middle, whichever lengths they have: the partition that holds the start so
    shifted is meant.
    """
    if length := _MEAN_LENGTHS.get(grain):
        count = max(1, round(min(window, MAX_WINDOW).days / length))
        return tuple(-timedelta(days=round(length * number - length / 2 + 0.2)) for number in range(1, count + 1))
    return tuple(-timedelta(days=number) for number in range(1, min(window, MAX_WINDOW).days + 1))


def compute_baseline(
    value: float,
    at: datetime,
    past: Iterable[Point],
    *,
    grain: Grain,
    zone: ZoneInfo,
    excluded: Sequence[Interval] = (),
    kind: ValueType = ValueType.NUMBER,
) -> Baseline | TooFewPoints:
    """The baseline for `value` of the partition that starts at `at`, from the narrowest cohort with enough points.

    `past` may hold the same partition more than once, and the one under test: neither counts. `excluded`: the ranges of
    confirmed incidents. Durations are seconds.
    """
    points = sorted({point.at: point for point in past if point.at < at}.values(), key=lambda point: point.at)
    judged = [_with_exclusion(point, excluded) for point in points]
    point_count = 0
    for cohort in COHORTS[grain]:
        same = cohort.key(at.astimezone(zone))
        alike = [point for point in judged if cohort.key(point.at.astimezone(zone)) == same]
        used = [point for point in alike if point.value is not None and not point.reason]
        point_count = len(used)
        if point_count >= MIN_POINTS:
            left_out = tuple(point for point in alike if point.reason)
            return _baseline_of(value, used, left_out, cohort.label(at.astimezone(zone)), kind)
    return TooFewPoints(point_count, tuple(point for point in judged if point.reason))


def _with_exclusion(point: Point, excluded: Sequence[Interval]) -> Point:
    if point.value is None:
        return Point(point.at, None, point.reason or "nothing was measured")
    if any(span.contains(point.at) for span in excluded):
        return Point(point.at, point.value, "part of an incident")
    return point


def _baseline_of(
    value: float, used: Sequence[Point], left_out: tuple[Point, ...], cohort: str, kind: ValueType
) -> Baseline:
    values = [point.value for point in used if point.value is not None]
    center = median(values)
    deviation = median(abs(past_value - center) for past_value in values)
    spread = max(MAD_TO_SIGMA * deviation, MIN_RELATIVE_SPREAD * abs(center), MIN_SPREAD.get(kind, 0.0))
    return Baseline(value, center, spread, cohort, tuple(used), left_out)


# Cohorts: narrowest first


@dataclass(frozen=True)
class Cohort:
    """Points with the same key are comparable; `label` says which they are, both by local time."""

    key: Callable[[datetime], object]
    label: Callable[[datetime], str]


def _is_weekend(local: datetime) -> bool:
    return local.weekday() >= 5


def _day_class(local: datetime) -> str:
    return "days of the weekend" if _is_weekend(local) else "workdays"


_SAME_WEEKDAY = Cohort(lambda local: local.weekday(), lambda local: f"{local:%A}s")
_WORKDAYS = Cohort(_is_weekend, _day_class)
_SAME_WEEKDAY_HOUR = Cohort(lambda local: (local.weekday(), local.hour), lambda local: f"{local:%A}s at {local:%H}:00")
_WORKDAYS_HOUR = Cohort(
    lambda local: (_is_weekend(local), local.hour), lambda local: f"{_day_class(local)} at {local:%H}:00"
)
_SAME_HOUR = Cohort(lambda local: local.hour, lambda local: f"days at {local:%H}:00")
_SAME_MONTH = Cohort(lambda local: local.month, lambda local: f"months of {local:%B}")
_MONTH_OF_QUARTER = Cohort(
    lambda local: local.month % 3, lambda local: f"months in the place of {local:%B} in the quarter"
)

_SAME_QUARTER = Cohort(lambda local: (local.month - 1) // 3, lambda local: f"quarters Q{(local.month + 2) // 3}")


def _all_points(noun: str) -> Cohort:
    return Cohort(lambda local: None, lambda local: f"all {noun}")


COHORTS: Mapping[Grain, tuple[Cohort, ...]] = {
    Grain.NONE: (_all_points("points"),),
    Grain.HOUR: (_SAME_WEEKDAY_HOUR, _WORKDAYS_HOUR, _SAME_HOUR, _all_points("hours")),
    Grain.DAY: (_SAME_WEEKDAY, _WORKDAYS, _all_points("days")),
    Grain.WEEK: (_all_points("weeks"),),
    Grain.MONTH: (_SAME_MONTH, _MONTH_OF_QUARTER, _all_points("months")),
    Grain.QUARTER: (_SAME_QUARTER, _all_points("quarters")),
    Grain.YEAR: (_all_points("years"),),
}


# For people


def baseline_facts(baseline: Baseline, shown: Callable[[float], str] = "{:,.6g}".format) -> dict[str, str]:
    """The band and where it comes from, in words: for the facts of a result. `shown` writes a value of the series."""
    low, high = baseline.band()
    facts = {
        "usual": f"{shown(baseline.center)}, from {shown(low)} to {shown(high)} within {BAND_SCORE} spreads of {shown(baseline.spread)}",
        "compared with": f"the last {len(baseline.points)} {baseline.cohort}",
    }
    if baseline.excluded:
        facts["left out"] = "; ".join(f"{point.at:%Y-%m-%d %H:%M} UTC: {point.reason}" for point in baseline.excluded)
    return facts
