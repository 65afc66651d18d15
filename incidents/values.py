"""Rows as the values of the domain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from django.db.models import Q

from incidents.domain import spans
from incidents.domain.resolution import FORCED
from incidents.models import Incident, Span
from lakehub.kernel.interval import Interval


def span_value(row: Span) -> spans.Span:
    return spans.Span(row.unit_id, row.copy_id, Interval(row.start, row.end), row.began_at, row.ended_at)


def incident_value(row: Incident, span_rows: Iterable[Span]) -> spans.Incident:
    return spans.Incident(
        id=row.pk,
        dataset=row.dataset_id,
        category=row.category,
        opened_at=row.opened_at,
        spans=tuple(map(span_value, span_rows)),
        resolved_at=row.resolved_at,
        forced=row.resolution in FORCED,
    )


def spans_of(incidents: Iterable[Incident]) -> dict[int, list[Span]]:
    """One query, whatever the number of incidents."""
    found: dict[int, list[Span]] = defaultdict(list)
    for row in Span.objects.filter(incident__in=list(incidents)).order_by("began_at", "pk"):
        found[row.incident_id].append(row)
    return found


def joinable(dataset: int, *, now: datetime) -> list[Incident]:
    """The detected incidents of a dataset that a new span may join or reopen, locked."""
    recent = Q(resolved_at=None) | Q(resolved_at__gt=now - spans.REOPEN_WITHIN)
    return list(Incident.objects.select_for_update().filter(recent, dataset=dataset, reported=False).order_by("pk"))
