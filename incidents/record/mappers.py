"""Rows as the values of the domain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from django.db.models import Q

from incidents.domain.incident import spans
from incidents.domain.incident.resolution import FORCED_RESOLUTIONS
from incidents.models import Incident, Span
from lakehub.kernel.interval import Interval


def span_from_row(row: Span) -> spans.Span:
    return spans.Span(row.unit_id, row.copy_id, Interval(row.start, row.end), row.began_at, row.ended_at)


def incident_from_row(row: Incident, span_rows: Iterable[Span]) -> spans.Incident:
    return spans.Incident(
        id=row.pk,
        dataset=row.dataset_id,
        category=row.category,
        opened_at=row.opened_at,
        spans=tuple(map(span_from_row, span_rows)),
        resolved_at=row.resolved_at,
        forced=row.resolution in FORCED_RESOLUTIONS,
    )


def spans_by_incident(incidents: Iterable[Incident]) -> dict[int, list[Span]]:
    """One query, whatever the number of incidents."""
    by_incident: dict[int, list[Span]] = defaultdict(list)
    for row in Span.objects.filter(incident__in=list(incidents)).order_by("began_at", "pk"):
        by_incident[row.incident_id].append(row)
    return by_incident


def lock_joinable_incidents(dataset: int, *, now: datetime) -> list[Incident]:
    """The detected incidents of a dataset that a new span may join or reopen, locked."""
    recent = Q(resolved_at=None) | Q(resolved_at__gt=now - spans.REOPEN_WITHIN)
    return list(Incident.objects.select_for_update().filter(recent, dataset=dataset, reported=False).order_by("pk"))


def spans_with_details(incident: Incident) -> list[Span]:
    """The spans of an incident with all that a message says of them."""
    related = ("unit__test__version", "copy__data_center")
    return list(Span.objects.filter(incident=incident).select_related(*related).order_by("began_at", "start"))
