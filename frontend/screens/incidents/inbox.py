"""The views of the inbox: which incidents each holds, how many they are, and which are the worst. All in the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from frontend.components.incident_rows import incidents_resolved_since
from frontend.components.open_incidents import open_incidents_by_state, worst_first
from frontend.ui.states import STATES
from incidents.models import Incident, Subscription

PAGE_SIZE = 50


RESOLVED_VIEW = "resolved"
STATE_VIEWS = ("reported", "suppressed", "snoozed", "grace")
VIEW_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "open": "Open",
        "mine": "Mine",
        "unassigned": "Unassigned",
        "followed": "Followed",
        **{state: STATES[state].word for state in STATE_VIEWS},
        RESOLVED_VIEW: "Resolved, 7 d",
    }
)
ALWAYS_SHOWN = frozenset({"open", "mine"})
"""Chips that stay when nothing is in them."""
_WEEK = timedelta(days=7)


@dataclass(frozen=True)
class InboxView:
    key: str
    name: str
    n: int


def incidents_in_view(view: str, user_id: int | None, *, now: datetime) -> QuerySet[Incident]:
    """Those of one view, worst first; resolved ones newest first."""
    if view == RESOLVED_VIEW:
        return incidents_resolved_since(now - _WEEK)
    return worst_first(open_incidents_by_state(now=now).filter(_view_filter(view, user_id)))


def inbox_views(user_id: int | None, *, now: datetime) -> dict[str, InboxView]:
    """Every view with its count. Two queries."""
    keys = [key for key in VIEW_NAMES if key != RESOLVED_VIEW]
    totals = open_incidents_by_state(now=now).aggregate(
        **{key: Count("pk", filter=_view_filter(key, user_id)) for key in keys}
    )
    totals[RESOLVED_VIEW] = incidents_resolved_since(now - _WEEK).count()
    return {key: InboxView(key, VIEW_NAMES[key], n) for key, n in totals.items()}


def _view_filter(view: str, user_id: int | None) -> Q:
    if view == "open":
        return Q(pk__isnull=False)
    if view == "mine":
        return Q(assignee=user_id)
    if view == "unassigned":
        return Q(assignee=None)
    if view == "followed":
        return Q(Exists(Subscription.objects.filter(user=user_id, dataset=OuterRef("dataset"))))
    return Q(shown=view)
