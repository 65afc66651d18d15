"""The inbox of incidents."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from frontend.live import render_live
from frontend.queries import inbox
from frontend.queries import incidents as query
from frontend.views.scores import incidents_behind
from incidents.models import FalsePositive
from lakehub import wiring

FRAGMENTS = {"list": "frontend/incidents/list.html"}
SHOWN_TODAY = 20
"""Of what was resolved today, below what is open."""


def incidents(request: HttpRequest) -> HttpResponse:
    if "behind" in request.GET:
        return incidents_behind(request)
    now = wiring.clock.now()
    view = request.GET.get("view", "open")
    view = view if view in inbox.NAMES else "open"
    views = inbox.views(request.user.pk, now=now)
    pages = Paginator(inbox.incidents_of(view, request.user.pk, now=now), inbox.PAGE)
    pages.count = views[view].n
    page = pages.get_page(request.GET.get("page"))
    midnight = timezone.localtime(now).replace(hour=0, minute=0, second=0, microsecond=0)
    resolved = query.resolved_since(midnight)
    today = list(resolved[:SHOWN_TODAY]) if view == "open" and page.number == 1 else []
    context = {
        "now": now,
        "view": view,
        "views": [one for one in views.values() if one.n or one.key in inbox.ALWAYS],
        "page": page,
        "rows": query.rows(list(page.object_list), now=now),
        "resolved_today": query.rows(today, now=now) if today else [],
        "resolved_n": len(today) if len(today) < SHOWN_TODAY else resolved.count(),
        "false_positives": FalsePositive.choices,
    }
    return render_live(request, "frontend/incidents/page.html", context, FRAGMENTS)
