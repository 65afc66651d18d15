"""Incidents as a list shows them: what each goes by, which data it is about, what happens next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, Min, OuterRef, Q, QuerySet, Subquery

from frontend.components.incident_headline import incident_headline
from frontend.ui import words
from frontend.ui.states import STATES
from incidents.models import SUPPRESSED, Incident, IncidentState, Message, Span
from lakehub.kernel.interval import Interval, union


@dataclass(frozen=True)
class IncidentRow:
    incident: Incident
    state: str
    ranges: tuple[tuple[str, str], ...]
    """(data center, data range) of what is affected now, or was."""
    next_at: datetime | None
    """The next rerun of one of its units."""
    suppressed_by: int | None
    title: str

    @property
    def duration(self) -> timedelta | None:
        return self.incident.resolved_at - self.incident.opened_at if self.incident.resolved_at else None

    @property
    def word(self) -> str:
        if self.incident.reported:
            return str(self.incident.get_state_display()).capitalize()
        word = STATES[self.state].word
        return (
            f"{word}, acknowledged"
            if self.state == "fail" and self.incident.state == IncidentState.ACKNOWLEDGED
            else word
        )


def open_incidents() -> QuerySet[Incident]:
    """Not resolved, with the incident that holds a message of theirs, if any."""
    suppressed_messages = Message.objects.filter(SUPPRESSED, incident=OuterRef("pk"))
    return (
        Incident.objects.filter(resolved_at=None, dataset__offboarded_at=None)
        .annotate(held=Exists(suppressed_messages), held_by=Subquery(suppressed_messages.values("held_by")[:1]))
        .select_related("dataset__team", "assignee", "report__copy__data_center")
        .order_by("opened_at")
    )


def shown_state(incident: Incident, *, now: datetime) -> str:
    """What the incident goes by; resolved ones by how they ended."""
    if incident.resolved_at is not None:
        return "pass" if incident.resolution in ("auto", "manual_rerun", "declared_fixed") else "none"
    if incident.reported and incident.state != IncidentState.ACKNOWLEDGED:
        return "none" if incident.state == IncidentState.REJECTED else "reported"
    if incident.snoozed_until is not None and now < incident.snoozed_until:
        return "snoozed"
    if getattr(incident, "held", False):
        return "suppressed"
    return "grace" if incident.dataset.in_grace(now=now) else "fail"


def incidents_resolved_since(since: datetime) -> QuerySet[Incident]:
    return (
        Incident.objects.filter(resolved_at__gte=since)
        .select_related("dataset__team", "assignee")
        .order_by("-resolved_at", "-pk")
    )


def incident_rows(incidents: Sequence[Incident], *, now: datetime) -> list[IncidentRow]:
    """Two queries: the spans and the next reruns."""
    spans: dict[int, list[Span]] = defaultdict(list)
    for span in (
        Span.objects.filter(incident__in=incidents).select_related("copy__data_center", "unit__test").order_by("start")
    ):
        spans[span.incident_id].append(span)
    active = Q(ended_at=None)
    reruns = dict(
        Span.objects.filter(active, incident__in=incidents)
        .values_list("incident")
        .annotate(at=Min("unit__due_at"))
        .order_by()
    )
    return [
        IncidentRow(
            incident,
            shown_state(incident, now=now),
            affected_ranges(incident, spans[incident.pk]),
            reruns.get(incident.pk),
            getattr(incident, "held_by", None),
            incident_headline(incident, spans[incident.pk]),
        )
        for incident in incidents
    ]


def ranges_text(ranges: Sequence[tuple[str, str]]) -> str:
    """`all data in dc1 and dc2; [16 Nov, 17 Nov) in dc3`."""
    places: dict[str, list[str]] = defaultdict(list)
    for where, span in ranges:
        places[span].append(where)
    return "; ".join(f"{span} in {' and '.join(names)}" for span, names in places.items())


def affected_ranges(incident: Incident, spans: Sequence[Span]) -> tuple[tuple[str, str], ...]:
    """The union of the ranges, by data center: of the active spans, or of all where it is over."""
    dataset = incident.dataset
    if incident.reported and hasattr(incident, "report"):
        report = incident.report
        where = report.copy.data_center.name if report.copy else "each copy"
        span_of_it = Interval(report.start, report.end)
        return ((where, words.data_range(span_of_it, dataset.partition_grain, dataset.zone)),)
    active = [span for span in spans if span.ended_at is None] or list(spans)
    by_copy: dict[str, list[Interval]] = defaultdict(list)
    for span in active:
        by_copy[span.copy.data_center.name].append(Interval(span.start, span.end))
    return tuple(
        (
            name,
            ", ".join(words.data_range(interval, dataset.partition_grain, dataset.zone) for interval in union(ranges)),
        )
        for name, ranges in sorted(by_copy.items())
    )
