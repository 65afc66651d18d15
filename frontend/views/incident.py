"""The page of one incident."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from frontend.live import render_live
from frontend.queries import incident as query
from frontend.queries import timeline
from incidents.models import Backfill, FalsePositive, Incident
from lakehub import wiring
from lakehub.accounts.models import User
from lakehub.accounts.permissions import ACTIONS, can

FRAGMENTS = {"timeline": "frontend/incident/timeline.html"}
ROOT_CAUSES = ("upstream late", "schema change", "replication", "code change", "source data", "other")


def incident(request: HttpRequest, pk: int) -> HttpResponse:
    now = wiring.clock.now()
    found = find(pk)
    told = query.story(found, now=now)
    runs = query.results(told)
    items = timeline.timeline(found, runs)
    show = request.GET.get("show", "all")
    show = show if show in timeline.KINDS else "all"
    downstream, consumers = query.impact(found, told.spans, now=now)
    user = request.user
    context = {
        "now": now,
        "incident": found,
        "told": told,
        "life": query.life(told),
        "plot": query.plot(told, runs, now=now),
        "items": [item for item in items if show in ("all", item.group)],
        "counts": timeline.counts(items),
        "show": show,
        "downstream": downstream,
        "consumers": consumers,
        "similar": query.similar(found, now=now),
        "may": {
            action: isinstance(user, User) and can(user, action, found.dataset.team)
            for action in ("acknowledge", "resolve")
        },
        "roles": " or ".join(role.label for role in ACTIONS["acknowledge"]),
        "root_causes": ROOT_CAUSES,
        "backfills": Backfill.choices,
        "false_positives": FalsePositive.choices,
    }
    return render_live(request, "frontend/incident/page.html", context, FRAGMENTS)


def find(pk: int) -> Incident:
    found = query.incident_with(pk)
    if found is None:
        raise Http404(f"There is no incident #{pk}. The list of incidents has all that are open.")
    return found
