"""The views of the inbox: which incidents each holds, how many they are, and which are the worst. All in the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from frontend.components.incident_rows import incidents_resolved_since
from frontend.components.open_incidents import open_incidents_by_state, worst_first
from frontend.components.team_scope import TeamScope
from frontend.ui.states import STATES
from incidents.models import Incident, Subscription

PAGE_SIZE = 50


RESOLVED_VIEW = "resolved"
REPORTED_BY_ME_VIEW = "reported-by-me"
STATE_VIEWS = ("reported", "suppressed", "snoozed", "grace")
VIEW_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "open": "Open",
        "mine": "Mine",
        "unassigned": "Unassigned",
        "followed": "Followed",
        "reported-by-me": "Reported by me",
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


def incidents_in_view(view: str, user_id: int | None, scope: TeamScope, *, now: datetime) -> QuerySet[Incident]:
    """Those of one view, worst first; resolved ones, and what the viewer reported, newest first."""
    if view == RESOLVED_VIEW:
        return incidents_resolved_since(now - _WEEK).filter(scope.where("dataset__team"))
    if view == REPORTED_BY_ME_VIEW:
        return _reported_by(user_id).select_related("dataset__team", "assignee", "report__copy__data_center")
    return worst_first(open_incidents_by_state(now=now).filter(_view_filter(view, user_id, scope)))


def inbox_views(user_id: int | None, scope: TeamScope, *, now: datetime) -> dict[str, InboxView]:
    """Every view with its count. Three queries."""
    keys = [key for key in VIEW_NAMES if key not in (RESOLVED_VIEW, REPORTED_BY_ME_VIEW)]
    totals = open_incidents_by_state(now=now).aggregate(
        **{key: Count("pk", filter=_view_filter(key, user_id, scope)) for key in keys}
    )
    totals[RESOLVED_VIEW] = incidents_resolved_since(now - _WEEK).filter(scope.where("dataset__team")).count()
    totals[REPORTED_BY_ME_VIEW] = _reported_by(user_id).count()
    return {key: InboxView(key, name, totals[key]) for key, name in VIEW_NAMES.items()}


def _reported_by(user_id: int | None) -> QuerySet[Incident]:
    """Whatever became of them, in whatever team."""
    return Incident.objects.filter(reported=True, report__reporter=user_id).order_by("-opened_at", "-pk")


def _view_filter(view: str, user_id: int | None, scope: TeamScope) -> Q:
    """What is the viewer's own is shown in whatever team it is."""
    if view == "mine":
        return Q(assignee=user_id)
    if view == "followed":
        return Q(Exists(Subscription.objects.filter(user=user_id, dataset=OuterRef("dataset"))))
    within = scope.where("dataset__team")
    if view == "open":
        return within & Q(pk__isnull=False)
    if view == "unassigned":
        return within & Q(assignee=None)
    return within & Q(shown=view)
