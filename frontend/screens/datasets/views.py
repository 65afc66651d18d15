"""The list of datasets."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect

from frontend.screens.datasets.queries import PAGE_SIZE, DatasetFilters, dataset_rows, list_datasets
from frontend.ui.form_actions import actor_of
from frontend.ui.live import render_live
from frontend.ui.states import STATES
from frontend.ui.whole_numbers import parse_whole_number
from lakehub import wiring
from lakehub.accounts.models import Membership
from quality.models import Category

FRAGMENTS = {"list": "screens/datasets/templates/list.html"}


def datasets(request: HttpRequest) -> HttpResponse:
    query_text = request.GET.get("q", "").strip()
    incident = parse_whole_number(query_text[1:]) if query_text.startswith("#") else None
    if incident is not None:
        return redirect("incident", pk=incident)
    now = wiring.clock.now()
    filters = _filters(request.GET)
    listing = list_datasets(filters, _my_teams(request), now=now)
    page = Paginator(listing.matches, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "now": now,
        "filters": filters,
        "listing": listing,
        "page": page,
        "rows": dataset_rows(list(page.object_list), now=now),
        "categories": [category.label.capitalize() for category in Category],
        "views": _saved_views(request, filters),
    }
    return render_live(request, "screens/datasets/templates/page.html", context, FRAGMENTS)


def _filters(query: QueryDict) -> DatasetFilters:
    """Unknown values are dropped: an old link must not show an error, only more than it used to."""
    return DatasetFilters(
        q=query.get("q", "").strip(),
        states=frozenset(state for state in query.getlist("state") if state in STATES),
        tiers=frozenset(int(tier) for tier in query.getlist("tier") if tier in "012345" and len(tier) == 1),
        teams=frozenset(query.getlist("team")),
        sources=frozenset(query.getlist("source")),
        data_centers=frozenset(query.getlist("dc")),
        mine="mine" in query,
        no_key="no_key" in query,
    )


def _my_teams(request: HttpRequest) -> frozenset[int]:
    return frozenset(Membership.objects.filter(user=actor_of(request)).values_list("team_id", flat=True))


_SAVED_VIEWS = (
    ("All", ""),
    ("My teams", "mine=1"),
    ("Not passing", "state=fail&state=unknown&state=warn&state=reported&state=suppressed&state=snoozed&state=grace"),
    ("Tier 0 and 1", "tier=0&tier=1"),
    ("No primary key", "no_key=1"),
)


def _saved_views(request: HttpRequest, filters: DatasetFilters) -> list[tuple[str, str, bool]]:
    """(name, address, is this the one)"""
    return [
        (name, f"{request.path}?{query}" if query else request.path, _filters(QueryDict(query)) == filters)
        for name, query in _SAVED_VIEWS
    ]
