"""What one test observed over time on one copy, ready to be drawn (js/plots.js) and to be read as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from frontend import words
from frontend.observed import limit, needs, observed, unit_of
from frontend.seen import Band, band
from incidents.models import Span
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import FOREVER, Interval
from quality.models import Result, Unit

MOST = 400
DAYS = (30, 60, 365)


@dataclass(frozen=True)
class Point:
    at: datetime
    value: float
    state: str
    said: str
    """The value in words."""
    label: str
    """Which data, or which run."""


@dataclass(frozen=True)
class Shade:
    start: datetime
    end: datetime
    state: str
    label: str


@dataclass(frozen=True)
class Plot:
    points: list[Point]
    limit: float | None = None
    limit_label: str = ""
    unit: str = ""
    shades: tuple[Shade, ...] = ()
    now: datetime | None = None
    next_at: datetime | None = None
    window: tuple[datetime, datetime] | None = None
    """What is in view at first; None: all points."""
    steps: bool = False
    """A value holds until the next one."""
    bands: tuple[Band, ...] = ()
    """Of a test that compares with the past: what was usual at each point."""

    @property
    def last(self) -> Point:
        return self.points[-1]

    @property
    def newest_first(self) -> list[Point]:
        return self.points[::-1]

    def drawn(self) -> dict[str, Any]:
        """For the script: times in the viewer's zone without an offset, because plotly draws wall time."""
        return {
            "unit": self.unit,
            "limit": self.limit,
            "limitLabel": self.limit_label,
            "points": [{**asdict(point), "at": _wall(point.at)} for point in self.points],
            "shades": [
                {**asdict(shade), "start": _wall(shade.start), "end": _wall(shade.end)} for shade in self.shades
            ],
            "from": _wall(self.window[0]) if self.window else None,
            "to": _wall(self.window[1]) if self.window else None,
            "steps": self.steps,
            "low": [one.low for one in self.bands],
            "high": [one.high for one in self.bands],
            "now": _wall(self.now) if self.now else None,
            "next": _wall(self.next_at) if self.next_at else None,
        }


def _wall(instant: datetime) -> str:
    return timezone.localtime(instant).strftime("%Y-%m-%dT%H:%M:%S")


def of_row(dataset: Dataset, unit: Unit, *, days: int, now: datetime) -> Plot:
    """The history of the test and copy that this unit belongs to. Two queries."""
    if is_whole(unit):
        return of_runs(unit, days=days, now=now)
    return of_units(dataset, unit.test_id, unit.copy_id, days=days, now=now)


def of_units(dataset: Dataset, test: int, copy: int, *, days: int, now: datetime) -> Plot:
    """A test of partitions: one point a data range. Two queries."""
    units = Unit.objects.filter(test=test, copy=copy, start__gte=now - timedelta(days=days), observed__isnull=False)
    newest = list(units.order_by("-start")[:MOST])[::-1]
    points = [
        Point(
            unit.start,
            unit.observed or 0.0,
            unit.verdict,
            observed(unit),
            words.partition(Interval(unit.start, unit.end), dataset.partition_grain, dataset.zone),
        )
        for unit in newest
    ]
    spans = Span.objects.filter(unit__in=newest).select_related("incident")
    shades = {
        (s.start, s.incident_id): Shade(s.start, s.end, "none" if s.ended_at else "fail", f"#{s.incident_id}")
        for s in spans
    }
    return _plot(points, newest, tuple(shades.values()), now)


def of_runs(unit: Unit, *, days: int, now: datetime) -> Plot:
    """A test of everything at once: one point a run. Two queries."""
    results = Result.objects.filter(unit=unit, read_at__gte=now - timedelta(days=days), observed__isnull=False)
    newest = list(results.order_by("-read_at")[:MOST])[::-1]
    spans = Span.objects.filter(unit=unit, began_at__gte=now - timedelta(days=days))
    shades = tuple(
        Shade(s.began_at, s.ended_at or now, "none" if s.ended_at else "fail", f"#{s.incident_id}") for s in spans
    )
    return _plot([run_point(result) for result in newest], newest, shades, now)


def run_point(result: Result) -> Point:
    state = result.outcome if result.outcome in ("pass", "fail") else "unknown"
    return Point(result.read_at, result.observed or 0.0, state, observed(result), result.trigger)


def of_results(
    results: Sequence[Result],
    shades: tuple[Shade, ...],
    *,
    now: datetime | None = None,
    next_at: datetime | None = None,
) -> Plot:
    """Runs that were read already, oldest first, with phases shaded."""
    if not results:
        return Plot([])
    last = results[-1]
    points = [run_point(result) for result in results]
    return Plot(
        points,
        limit(last.threshold),
        f"needs {needs(last)}",
        unit_of(last),
        shades,
        now,
        next_at,
        _window(shades, next_at),
        True,
    )


def _window(shades: tuple[Shade, ...], next_at: datetime | None) -> tuple[datetime, datetime] | None:
    """The phases with some room before and after, whatever ran long before."""
    if not shades:
        return None
    start = min(shade.start for shade in shades)
    end = max(max(shade.end for shade in shades), next_at or start)
    room = max((end - start) / 6, timedelta(minutes=1))
    return start - room, end + room


def _plot(points: list[Point], rows: Sequence[Unit | Result], shades: tuple[Shade, ...], now: datetime) -> Plot:
    if not rows:
        return Plot(points)
    bands = tuple(band(row) for row in rows)
    if any(bands):
        return _in_band(points, bands, shades, now)
    last = rows[-1]
    return Plot(points, limit(last.threshold), f"needs {needs(last)}", unit_of(last), shades, now)


def _in_band(points: list[Point], bands: tuple[Band | None, ...], shades: tuple[Shade, ...], now: datetime) -> Plot:
    """The series itself rather than how unusual it is; what had too few points to compare with is left out."""
    told = [(point, one) for point, one in zip(points, bands, strict=True) if one is not None]
    series = [
        replace(point, value=one.value, said=f"{words.number(one.value)}, deviates by {point.said}")
        for point, one in told
    ]
    return Plot(series, shades=shades, now=now, bands=tuple(one for _, one in told))


def is_whole(unit: Unit) -> bool:
    return unit.end >= FOREVER
