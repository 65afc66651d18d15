"""What one test observed over time on one copy, ready to be drawn (js/plots.js) and to be read as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from frontend.results.measurements import measurement_unit, observed_text, threshold_number, threshold_text
from frontend.results.result_details import UsualBand, usual_band
from frontend.ui import words
from incidents.models import Span
from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import FOREVER, Interval
from quality.models import Result, Unit

MAX_POINTS = 400
DAY_CHOICES = (30, 60, 365)


@dataclass(frozen=True)
class Point:
    at: datetime
    value: float
    state: str
    value_text: str
    """The value in words."""
    label: str
    """Which data, or which run."""


@dataclass(frozen=True)
class ShadedPeriod:
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
    shades: tuple[ShadedPeriod, ...] = ()
    now: datetime | None = None
    next_at: datetime | None = None
    window: tuple[datetime, datetime] | None = None
    """What is in view at first; None: all points."""
    steps: bool = False
    """A value holds until the next one."""
    bands: tuple[UsualBand, ...] = ()
    """Of a test that compares with the past: what was usual at each point."""

    @property
    def last(self) -> Point:
        return self.points[-1]

    @property
    def newest_first(self) -> list[Point]:
        return self.points[::-1]

    def script_data(self) -> dict[str, Any]:
        """For the script: times in the viewer's zone without an offset, because plotly draws wall time."""
        return {
            "unit": self.unit,
            "limit": self.limit,
            "limitLabel": self.limit_label,
            "points": [{**asdict(point), "at": _wall_time(point.at)} for point in self.points],
            "shades": [
                {**asdict(shade), "start": _wall_time(shade.start), "end": _wall_time(shade.end)}
                for shade in self.shades
            ],
            "from": _wall_time(self.window[0]) if self.window else None,
            "to": _wall_time(self.window[1]) if self.window else None,
            "steps": self.steps,
            "low": [band.low for band in self.bands],
            "high": [band.high for band in self.bands],
            "now": _wall_time(self.now) if self.now else None,
            "next": _wall_time(self.next_at) if self.next_at else None,
        }


def _wall_time(instant: datetime) -> str:
    return timezone.localtime(instant).strftime("%Y-%m-%dT%H:%M:%S")


def plot_of_unit(dataset: Dataset, unit: Unit, *, days: int, now: datetime) -> Plot:
    """The history of the test and copy that this unit belongs to. Two queries."""
    if covers_everything(unit):
        return plot_of_runs(unit, days=days, now=now)
    return plot_of_partitions(dataset, unit.test_id, unit.copy_id, days=days, now=now)


def plot_of_partitions(dataset: Dataset, test: int, copy: int, *, days: int, now: datetime) -> Plot:
    """A test of partitions: one point a data range. Two queries."""
    units = Unit.objects.filter(test=test, copy=copy, start__gte=now - timedelta(days=days), observed__isnull=False)
    newest = list(units.order_by("-start")[:MAX_POINTS])[::-1]
    points = [
        Point(
            unit.start,
            unit.observed or 0.0,
            unit.verdict,
            observed_text(unit),
            words.partition(Interval(unit.start, unit.end), dataset.partition_grain, dataset.zone),
        )
        for unit in newest
    ]
    spans = Span.objects.filter(unit__in=newest).select_related("incident")
    shades = {
        (s.start, s.incident_id): ShadedPeriod(s.start, s.end, "none" if s.ended_at else "fail", f"#{s.incident_id}")
        for s in spans
    }
    return _plot(points, newest, tuple(shades.values()), now)


def plot_of_runs(unit: Unit, *, days: int, now: datetime) -> Plot:
    """A test of everything at once: one point a run. Two queries."""
    results = Result.objects.filter(unit=unit, read_at__gte=now - timedelta(days=days), observed__isnull=False)
    newest = list(results.order_by("-read_at")[:MAX_POINTS])[::-1]
    spans = Span.objects.filter(unit=unit, began_at__gte=now - timedelta(days=days))
    shades = tuple(
        ShadedPeriod(s.began_at, s.ended_at or now, "none" if s.ended_at else "fail", f"#{s.incident_id}")
        for s in spans
    )
    return _plot([point_of_result(result) for result in newest], newest, shades, now)


def point_of_result(result: Result) -> Point:
    state = result.outcome if result.outcome in ("pass", "fail") else "unknown"
    return Point(result.read_at, result.observed or 0.0, state, observed_text(result), result.trigger)


def plot_of_results(
    results: Sequence[Result],
    shades: tuple[ShadedPeriod, ...],
    *,
    now: datetime | None = None,
    next_at: datetime | None = None,
) -> Plot:
    """Runs that were read already, oldest first, with phases shaded."""
    if not results:
        return Plot([])
    last = results[-1]
    points = [point_of_result(result) for result in results]
    return Plot(
        points,
        threshold_number(last.threshold),
        f"needs {threshold_text(last)}",
        measurement_unit(last),
        shades,
        now,
        next_at,
        _initial_view(shades, next_at),
        True,
    )


def _initial_view(shades: tuple[ShadedPeriod, ...], next_at: datetime | None) -> tuple[datetime, datetime] | None:
    """The phases with some room before and after, whatever ran long before."""
    if not shades:
        return None
    start = min(shade.start for shade in shades)
    end = max(max(shade.end for shade in shades), next_at or start)
    room = max((end - start) / 6, timedelta(minutes=1))
    return start - room, end + room


def _plot(points: list[Point], rows: Sequence[Unit | Result], shades: tuple[ShadedPeriod, ...], now: datetime) -> Plot:
    if not rows:
        return Plot(points)
    bands = tuple(usual_band(row) for row in rows)
    if any(bands):
        return _plot_with_bands(points, bands, shades, now)
    last = rows[-1]
    return Plot(
        points, threshold_number(last.threshold), f"needs {threshold_text(last)}", measurement_unit(last), shades, now
    )


def _plot_with_bands(
    points: list[Point], bands: tuple[UsualBand | None, ...], shades: tuple[ShadedPeriod, ...], now: datetime
) -> Plot:
    """The series itself rather than how unusual it is; what had too few points to compare with is left out."""
    points_with_bands = [(point, band) for point, band in zip(points, bands, strict=True) if band is not None]
    series = [
        replace(point, value=band.value, value_text=f"{words.number(band.value)}, deviates by {point.value_text}")
        for point, band in points_with_bands
    ]
    return Plot(series, shades=shades, now=now, bands=tuple(band for _, band in points_with_bands))


def covers_everything(unit: Unit) -> bool:
    return unit.end >= FOREVER
