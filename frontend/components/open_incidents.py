"""Open incidents as the first page and the inbox count and sort them, in the database."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Case, F, Q, QuerySet, Value, When

from frontend.components.incident_rows import open_incidents
from incidents.domain.incident.health import STATE_WEIGHTS
from incidents.models import Incident, IncidentState

AWAITING_DECISION = Q(shown__in=("fail", "reported"), answered=0)
"""Of `open_incidents_by_state`: somebody must take it."""


def open_incidents_by_state(*, now: datetime) -> QuerySet[Incident]:
    """Open incidents with what each goes by, as `incident_rows.shown_state` says it of one, and whether somebody has it."""
    answered = Q(state=IncidentState.ACKNOWLEDGED)
    report = Q(reported=True) & ~answered
    shown = Case(
        When(report & Q(state=IncidentState.REJECTED), then=Value("none")),
        When(report, then=Value("reported")),
        When(snoozed_until__gt=now, then=Value("snoozed")),
        When(held=True, then=Value("suppressed")),
        When(dataset__grace_until__gt=now, then=Value("grace")),
        default=Value("fail"),
    )
    return open_incidents().annotate(shown=shown, answered=Case(When(answered, then=Value(1)), default=Value(0)))


def worst_first(incidents: QuerySet[Incident]) -> QuerySet[Incident]:
    weights = [When(shown=state, then=Value(weight)) for state, weight in STATE_WEIGHTS.items()]
    return incidents.annotate(weight=Case(*weights, default=Value(0))).order_by(
        F("weight").desc(), F("answered").asc(), "dataset__tier", "opened_at", "pk"
    )
