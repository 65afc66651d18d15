"""The list of datasets."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect

from frontend.acting import actor_of
from frontend.live import render_live
from frontend.numbers import whole
from frontend.queries.datasets import PAGE, Filters, listing, rows
from frontend.states import STATES
from lakehub import wiring
from lakehub.accounts.models import Membership
from quality.models import Category

FRAGMENTS = {"list": "frontend/datasets/list.html"}


def datasets(request: HttpRequest) -> HttpResponse:
    asked = request.GET.get("q", "").strip()
    incident = whole(asked[1:]) if asked.startswith("#") else None
    if incident is not None:
        return redirect("incident", pk=incident)
    now = wiring.clock.now()
    filters = _filters(request.GET)
    found = listing(filters, _my_teams(request), now=now)
    page = Paginator(found.matches, PAGE).get_page(request.GET.get("page"))
    context = {
        "now": now,
        "filters": filters,
        "found": found,
        "page": page,
        "rows": rows(list(page.object_list), now=now),
        "categories": [category.label.capitalize() for category in Category],
        "views": _saved_views(request, filters),
    }
    return render_live(request, "frontend/datasets/page.html", context, FRAGMENTS)


def _filters(asked: QueryDict) -> Filters:
    """Unknown values are dropped: an old link must not show an error, only more than it used to."""
    return Filters(
        q=asked.get("q", "").strip(),
        states=frozenset(state for state in asked.getlist("state") if state in STATES),
        tiers=frozenset(int(tier) for tier in asked.getlist("tier") if tier in "012345" and len(tier) == 1),
        teams=frozenset(asked.getlist("team")),
        sources=frozenset(asked.getlist("source")),
        data_centers=frozenset(asked.getlist("dc")),
        mine="mine" in asked,
        no_key="no_key" in asked,
    )


def _my_teams(request: HttpRequest) -> frozenset[int]:
    return frozenset(Membership.objects.filter(user=actor_of(request)).values_list("team_id", flat=True))


_VIEWS = (
    ("All", ""),
    ("My teams", "mine=1"),
    ("Not passing", "state=fail&state=unknown&state=warn&state=reported&state=suppressed&state=snoozed&state=grace"),
    ("Tier 0 and 1", "tier=0&tier=1"),
    ("No primary key", "no_key=1"),
)


def _saved_views(request: HttpRequest, filters: Filters) -> list[tuple[str, str, bool]]:
    """(name, address, is this the one)"""
    return [
        (name, f"{request.path}?{query}" if query else request.path, _filters(QueryDict(query)) == filters)
        for name, query in _VIEWS
    ]
