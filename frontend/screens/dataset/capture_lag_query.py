"""How long changes of a captured dataset take to the lake, and whether all messages of its log were read, for people."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from django.utils import timezone

from frontend.ui import svg, words
from ingestion.domain.lag import LagCounts
from ingestion.lake.captured.hours import HOUR, hour_at
from ingestion.models import CaptureHour
from lakehub.catalog.models import Dataset

DAY = 24 * HOUR
SHOWN, SUMMED = 2 * DAY, 7 * DAY
WINDOWS = (("1 h", HOUR), ("24 h", DAY), ("7 d", SUMMED))
_WIDTHS = (("s", 320), ("m", 640))
_NAMED = 3


@dataclass(frozen=True)
class LagRow:
    """Of a window that ends now. None: no change came."""

    window: str
    changes: int
    half: timedelta | None
    most: timedelta | None


@dataclass(frozen=True)
class CopyLags:
    """`charts`: of how long changes took; `count_charts`: of messages by hour, with those marked that do not add up.

    `counted`: messages in hours of the window that were compared with the log; `sourced`: those of hours in which the rows of the source were counted too.
    `differing`: hours that do not add up: in `missing` of them the log does not match the source, in `unread` what the commits have read. `named`: the newest of
    them in words, and how many more there are.
    """

    data_center: str
    rows: list[LagRow]
    charts: list[svg.StepChart]
    count_charts: list[svg.StepChart]
    counted: int
    sourced: int
    differing: int
    missing: int
    unread: int
    named: str


def capture_lags(dataset: Dataset, *, now: datetime) -> list[CopyLags]:
    """By data center; none where nothing was captured in a week. One query."""
    hours = CaptureHour.objects.filter(copy__dataset=dataset, copy__removed_at=None, start__gt=hour_at(now) - SUMMED)
    ordered = hours.select_related("copy__data_center").order_by("copy__data_center__name", "start")
    return [_lags(name, [*mine], now) for name, mine in groupby(ordered, lambda hour: hour.copy.data_center.name)]


def _lags(data_center: str, hours: list[CaptureHour], now: datetime) -> CopyLags:
    lags = {hour.start: LagCounts.from_json(hour.lags) for hour in hours}
    compared = [hour for hour in hours if hour.logged is not None and not hour.is_partial]
    rows = [_row(window, _sum(lags, since=hour_at(now) - length)) for window, length in WINDOWS]
    with_source = [hour for hour in compared if hour.source is not None]
    missing = [hour for hour in with_source if hour.source != hour.logged]
    unread = [hour for hour in compared if hour.logged != hour.read]
    differing = {hour.start for hour in (*missing, *unread)}
    return CopyLags(
        data_center,
        rows,
        _charts(lags, now),
        _count_charts({hour.start: hour.logged or 0 for hour in compared}, differing, now),
        counted=sum(hour.logged or 0 for hour in compared),
        sourced=sum(hour.source or 0 for hour in with_source),
        differing=len(differing),
        missing=len(missing),
        unread=len(unread),
        named=_named(differing, now),
    )


def _sum(lags: Mapping[datetime, LagCounts], *, since: datetime) -> LagCounts:
    return sum((counts for start, counts in lags.items() if start >= since), LagCounts())


def _row(window: str, counts: LagCounts) -> LagRow:
    return LagRow(window, counts.events, counts.quantile(0.5), counts.quantile(0.95))


def _charts(lags: Mapping[datetime, LagCounts], now: datetime) -> list[svg.StepChart]:
    """Empty where no change came in the time that is drawn."""
    starts = _hours(SHOWN, now)
    counts = [lags.get(start, LagCounts()) for start in starts]
    if not any(each.events for each in counts):
        return []
    zone = timezone.get_current_timezone()
    ticks = [(place, words.clock(starts[place], zone=zone, now=now)) for place in range(0, len(starts), DAY // HOUR)]
    slots = [(_seconds(each.quantile(0.5)), _seconds(each.quantile(0.95))) for each in counts]
    return [svg.quantile_chart(slots, ticks, _length, width, name) for name, width in _WIDTHS]


def _count_charts(
    counts: Mapping[datetime, int], differing: Collection[datetime], now: datetime
) -> list[svg.StepChart]:
    """Empty where no message was logged in any hour that was counted."""
    if not any(counts.values()):
        return []
    starts, zone = _hours(SUMMED, now), timezone.get_current_timezone()
    marked = [place for place, start in enumerate(starts) if start in differing]
    days = [start.astimezone(zone).date() for start in starts]
    begins = [place for place in range(1, len(days)) if days[place] != days[place - 1]]
    ticks = [
        (place, words.day(days[place])) for place in begins if place <= len(starts) - 24 and days[place].toordinal() % 2
    ]
    slots = [counts.get(start) for start in starts]
    return [svg.count_chart(slots, marked, ticks, _count, width, name) for name, width in _WIDTHS]


def _hours(length: timedelta, now: datetime) -> list[datetime]:
    """The last ones, of which the newest is not over."""
    return [hour_at(now) - length + HOUR * number for number in range(1, length // HOUR + 1)]


def _named(differing: Collection[datetime], now: datetime) -> str:
    zone = timezone.get_current_timezone()
    hours = [words.clock(start, zone=zone, now=now) for start in sorted(differing, reverse=True)]
    more = f" and {len(hours) - _NAMED} more" if len(hours) > _NAMED else ""
    return ", ".join(hours[:_NAMED]) + more


def _count(value: float) -> str:
    """Short enough to stand beside the chart."""
    return f"{value / 1e6:,.0f} M" if value >= 10**7 else words.number(value)


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


def _length(seconds: float) -> str:
    return words.duration(timedelta(seconds=round(seconds)))
