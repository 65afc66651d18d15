"""What the frame around every page needs: places, theme, zone, how many incidents are open."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Case, Count, Exists, Max, Q, Value, When
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from frontend.ui.theme import chosen_theme
from incidents.models import Incident
from lakehub.accounts.models import Membership


@dataclass(frozen=True)
class NavItem:
    name: str
    url: str
    icon: str
    key: str
    """Pressed after `g`."""
    is_current: bool
    on_phone_bar: bool
    """It has a place under the thumb on a phone."""


_NAV_ITEMS = (
    ("Home", "home", "home", "h", True),
    ("Incidents", "incidents", "incidents", "i", True),
    ("Datasets", "datasets", "datasets", "d", True),
    ("Gate", "gate", "gate", "t", True),
    ("Metrics", "metric-list", "metrics", "m", False),
    ("Schemas", "schemas", "schemas", "v", False),
    ("Scores", "scores", "scores", "s", False),
    ("Coverage", "coverage", "coverage", "c", False),
    ("Onboard", "onboarding", "onboard", "o", True),
)


def _section(url_name: str) -> str:
    """ "incident-acknowledge" and "incidents" are the same place."""
    return url_name.split("-")[0].rstrip("s")


class PageFrame:
    """Asked by base.html only, so that pages without the frame (the admin console, the API) pay nothing for it."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request

    @cached_property
    def nav_items(self) -> list[NavItem]:
        match = self._request.resolver_match
        section = _section(match.url_name or "") if match else ""
        return [
            NavItem(name, reverse(url), icon, key, bool(section) and section == _section(url), tab)
            for name, url, icon, key, tab in _NAV_ITEMS
        ]

    @cached_property
    def open_incidents(self) -> int:
        """Of the viewer's teams, as the inbox shows them first; of all where there are none. One query."""
        mine = Membership.objects.filter(user=self._request.user.pk)
        counted = Incident.objects.filter(resolved_at=None, dataset__offboarded_at=None).aggregate(
            all=Count("pk"),
            mine=Count("pk", filter=Q(dataset__team__in=mine.values("team"))),
            in_a_team=Max(Case(When(Exists(mine), then=Value(1)), default=Value(0))),
        )
        return int(counted["mine"] if counted["in_a_team"] else counted["all"])

    @property
    def theme(self) -> str:
        return chosen_theme(self._request)

    @property
    def zone(self) -> str:
        return timezone.get_current_timezone_name()


def page_frame(request: HttpRequest) -> dict[str, Any]:
    return {"frame": PageFrame(request)}
