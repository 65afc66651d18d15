"""The inbox of incidents."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from frontend.components import incident_rows as query
from frontend.components.team_scope import team_scope
from frontend.screens.incidents import inbox
from frontend.screens.incidents.drilldown import incidents_behind_score
from frontend.ui.live import render_live
from incidents.models import FalsePositive
from lakehub import wiring
from lakehub.accounts.permissions import teams_permitting

FRAGMENTS = {"list": "screens/incidents/templates/list.html"}
MAX_RESOLVED_TODAY = 20
"""Of what was resolved today, below what is open."""


def incident_inbox(request: HttpRequest) -> HttpResponse:
    if "behind" in request.GET:
        return incidents_behind_score(request)
    now = wiring.clock.now()
    view = request.GET.get("view", "open")
    view = view if view in inbox.VIEW_NAMES else "open"
    scope = team_scope(request)
    views = inbox.inbox_views(request.user.pk, scope, now=now)
    pages = Paginator(inbox.incidents_in_view(view, request.user.pk, scope, now=now), inbox.PAGE_SIZE)
    pages.count = views[view].n
    page = pages.get_page(request.GET.get("page"))
    midnight = timezone.localtime(now).replace(hour=0, minute=0, second=0, microsecond=0)
    resolved = query.incidents_resolved_since(midnight).filter(scope.where("dataset__team"))
    today = list(resolved[:MAX_RESOLVED_TODAY]) if view == "open" and page.number == 1 else []
    rows = query.incident_rows(list(page.object_list), now=now)
    may_act = teams_permitting(request.user, "acknowledge")
    context = {
        "now": now,
        "view": view,
        "views": [inbox_view for inbox_view in views.values() if inbox_view.n or inbox_view.key in inbox.ALWAYS_SHOWN],
        "page": page,
        "teams": scope,
        "rows": rows,
        "may_act": may_act,
        "any_may": any(row.incident.dataset.team_id in may_act for row in rows if row.incident.resolved_at is None),
        "resolved_today": query.incident_rows(today, now=now) if today else [],
        "resolved_n": len(today) if len(today) < MAX_RESOLVED_TODAY else resolved.count(),
        "false_positives": FalsePositive.choices,
    }
    return render_live(request, "screens/incidents/templates/page.html", context, FRAGMENTS)
