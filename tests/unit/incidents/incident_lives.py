"""Spans and incidents as the tests of their lives write them: days of November 2026, hours before NOW."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from incidents.domain.incident.spans import Incident, Span
from lakehub.kernel.interval import Interval

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def day(number: int, days: int = 1) -> Interval:
    start = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(days=number)
    return Interval(start, start + timedelta(days=days))


def hours_ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


def span(unit: int, data: Interval, began: float = 5, ended: float | None = None, copy: int = 1) -> Span:
    return Span(unit, copy, data, hours_ago(began), None if ended is None else hours_ago(ended))


def incident(
    number: int, *spans: Span, opened: float = 5, resolved: float | None = None, forced: bool = False
) -> Incident:
    return Incident(
        number, 7, "duplicates", hours_ago(opened), spans, None if resolved is None else hours_ago(resolved), forced
    )
