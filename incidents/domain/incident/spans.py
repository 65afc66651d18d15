"""Spans and the incidents made of them: what is affected, how long it lived.

A span is one unit failing: from the first failure to the PASS or the waiver that ended it. An incident is the spans of
one dataset and category that belong together; what it affects is the union of their ranges, not the hull, so that a
day that healed is free again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import FOREVER, Interval, union


@dataclass(frozen=True)
class Span:
    """Unit `unit` on `copy` failing over the range `data`, from `began_at` until `ended_at` (None: it still is)."""

    unit: int
    copy: int
    data: Interval
    began_at: datetime
    ended_at: datetime | None = None

    @property
    def is_active(self) -> bool:
        return self.ended_at is None

    def is_alive(self, at: datetime) -> bool:
        return self.began_at <= at and (self.ended_at is None or at < self.ended_at)

    def life(self, *, now: datetime) -> Interval | None:
        """`[began_at, ended_at)`, an active one until `now`; None where that is empty."""
        end = min(self.ended_at or now, now)
        return Interval(self.began_at, end) if self.began_at < end else None


@dataclass(frozen=True)
class Incident:
    """What is wrong with one dataset in one category. `forced`: a person resolved it, against the tests."""

    id: int
    dataset: int
    category: str
    opened_at: datetime
    spans: tuple[Span, ...] = ()
    resolved_at: datetime | None = None
    forced: bool = False

    @property
    def is_open(self) -> bool:
        return self.resolved_at is None

    @property
    def active(self) -> tuple[Span, ...]:
        return tuple(span for span in self.spans if span.is_active)

    def holds(self, unit: int) -> bool:
        return any(span.unit == unit for span in self.spans)


# What it means


def affected_ranges(spans: Iterable[Span], *, at: datetime, copy: int | None = None) -> tuple[Interval, ...]:
    """The data that is wrong at `at`: the union of the ranges of the spans alive then (on one copy, if given)."""
    return union(span.data for span in spans if span.is_alive(at) and copy in (None, span.copy))


def failing_intervals(spans: Iterable[Span], *, now: datetime) -> tuple[Interval, ...]:
    """When something of it was failing; what is open counts to `now`."""
    lives = (span.life(now=now) for span in spans)
    return union(lived for lived in lives if lived is not None)


def is_over(spans: Iterable[Span]) -> bool:
    """No span is active: the incident is resolved."""
    return not any(span.is_active for span in spans)


# What happens to spans


def end_span(spans: Iterable[Span], *, unit: int, at: datetime) -> tuple[Span, ...]:
    """The unit passed, or was waived, at `at`: its active span ends there (never before it began)."""
    return tuple(
        replace(span, ended_at=max(at, span.began_at)) if span.is_active and span.unit == unit else span
        for span in spans
    )


def stale_from(boundary: datetime) -> Interval:
    """What a freshness failure affects: everything from the boundary up to which the data is complete."""
    return Interval(boundary, FOREVER)


def with_boundary(span: Span, boundary: datetime) -> Span:
    """Freshness: the boundary moved while it fails. An ended span is frozen."""
    return replace(span, data=stale_from(boundary)) if span.is_active else span


class CannotCombine(Refused):
    """Spans move only within a dataset and category, and a split leaves something on both sides."""


def merge_incidents(into: Incident, other: Incident) -> tuple[Incident, Incident]:
    """All spans of `other` move to `into`; nothing else changes."""
    if into.id == other.id:
        raise CannotCombine(f"Incident #{into.id} cannot be merged with itself. Name another one.")
    if (into.dataset, into.category) != (other.dataset, other.category):
        raise CannotCombine(
            f"Incidents #{into.id} and #{other.id} are not of the same dataset and category: "
            f"{into.category} of dataset {into.dataset}, {other.category} of dataset {other.dataset}."
        )
    return replace(into, spans=into.spans + other.spans), replace(other, spans=())


def split_incident(incident: Incident, units: Collection[int]) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The spans that stay and those of `units` that go to an incident of their own."""
    go = tuple(span for span in incident.spans if span.unit in units)
    stay = tuple(span for span in incident.spans if span.unit not in units)
    if not go or not stay:
        raise CannotCombine(
            f"A split of #{incident.id} must leave spans on both sides: {len(stay)} stay, {len(go)} go."
        )
    return stay, go
