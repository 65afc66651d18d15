"""The views of the inbox: which incidents each holds, how many they are, and which are the worst. All in the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db.models import Case, Count, Exists, F, OuterRef, Q, QuerySet, Value, When

from frontend.queries.incidents import open_incidents, resolved_since
from frontend.states import STATES
from incidents.domain.rollup import WEIGHTS
from incidents.models import Incident, State, Subscription

PAGE = 50
UNDECIDED = Q(shown__in=("fail", "reported"), answered=0)
"""Of `shown_open`: somebody must take it."""
RESOLVED = "resolved"
STATE_VIEWS = ("reported", "suppressed", "snoozed", "grace")
NAMES: Mapping[str, str] = MappingProxyType(
    {
        "open": "Open",
        "mine": "Mine",
        "unassigned": "Unassigned",
        "followed": "Followed",
        **{state: STATES[state].word for state in STATE_VIEWS},
        RESOLVED: "Resolved, 7 d",
    }
)
ALWAYS = frozenset({"open", "mine"})
"""Chips that stay when nothing is in them."""
_WEEK = timedelta(days=7)


@dataclass(frozen=True)
class View:
    key: str
    name: str
    n: int


def shown_open(*, now: datetime) -> QuerySet[Incident]:
    """Open incidents with what each goes by, as `incidents.shown_state` says it of one, and whether somebody has it."""
    answered = Q(state=State.ACKNOWLEDGED)
    report = Q(reported=True) & ~answered
    shown = Case(
        When(report & Q(state=State.REJECTED), then=Value("none")),
        When(report, then=Value("reported")),
        When(snoozed_until__gt=now, then=Value("snoozed")),
        When(held=True, then=Value("suppressed")),
        When(dataset__grace_until__gt=now, then=Value("grace")),
        default=Value("fail"),
    )
    return open_incidents().annotate(shown=shown, answered=Case(When(answered, then=Value(1)), default=Value(0)))


def worst_first(incidents: QuerySet[Incident]) -> QuerySet[Incident]:
    weights = [When(shown=state, then=Value(weight)) for state, weight in WEIGHTS.items()]
    return incidents.annotate(weight=Case(*weights, default=Value(0))).order_by(
        F("weight").desc(), F("answered").asc(), "dataset__tier", "opened_at", "pk"
    )


def incidents_of(view: str, user_id: int | None, *, now: datetime) -> QuerySet[Incident]:
    """Those of one view, worst first; resolved ones newest first."""
    if view == RESOLVED:
        return resolved_since(now - _WEEK)
    return worst_first(shown_open(now=now).filter(_holds(view, user_id)))


def views(user_id: int | None, *, now: datetime) -> dict[str, View]:
    """Every view with its count. Two queries."""
    keys = [key for key in NAMES if key != RESOLVED]
    totals = shown_open(now=now).aggregate(**{key: Count("pk", filter=_holds(key, user_id)) for key in keys})
    totals[RESOLVED] = resolved_since(now - _WEEK).count()
    return {key: View(key, NAMES[key], n) for key, n in totals.items()}


def _holds(view: str, user_id: int | None) -> Q:
    if view == "open":
        return Q(pk__isnull=False)
    if view == "mine":
        return Q(assignee=user_id)
    if view == "unassigned":
        return Q(assignee=None)
    if view == "followed":
        return Q(Exists(Subscription.objects.filter(user=user_id, dataset=OuterRef("dataset"))))
    return Q(shown=view)
