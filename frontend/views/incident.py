"""The page of one incident."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from frontend.acting import actor_of
from frontend.live import render_live
from frontend.queries import incident as query
from frontend.queries import timeline
from frontend.queries.incident_choices import choices
from incidents import snoozing
from incidents.causes import likely_cause
from incidents.impact import consumers
from incidents.models import Backfill, FalsePositive, Incident, RootCause, Subscription
from incidents.upstream import open_upstream
from lakehub import wiring
from lakehub.accounts.permissions import ACTIONS, can

FRAGMENTS = {"timeline": "frontend/incident/timeline.html"}


def incident(request: HttpRequest, pk: int) -> HttpResponse:
    now = wiring.clock.now()
    found = find(pk)
    told = query.story(found, now=now)
    runs = query.results(told)
    items = timeline.timeline(found, runs)
    show = request.GET.get("show", "all")
    show = show if show in timeline.KINDS else "all"
    user = actor_of(request)
    may = {action: can(user, action, found.dataset.team) for action in ("acknowledge", "resolve")}
    context = {
        "now": now,
        "incident": found,
        "told": told,
        "life": query.life(told),
        "cause": likely_cause(found, now=now, spans=told.spans),
        "plot": query.plot(told, runs, now=now),
        "items": [item for item in items if show in ("all", item.group)],
        "counts": timeline.counts(items),
        "show": show,
        "downstream": query.reached(told, now=now),
        "consumers": consumers(found, told.spans, now=now),
        "similar": query.similar(found, now=now),
        "upstream": open_upstream(found.dataset) if found.resolved_at is None else [],
        "snooze": snoozing.of(found, now=now),
        "may": may,
        "choices": choices(found, told.spans) if may["acknowledge"] else None,
        "followed": Subscription.objects.filter(user=user, dataset=found.dataset_id).exists(),
        "roles": " or ".join(role.label for role in ACTIONS["acknowledge"]),
        "root_causes": RootCause.choices,
        "backfills": Backfill.choices,
        "false_positives": FalsePositive.choices,
    }
    return render_live(request, "frontend/incident/page.html", context, FRAGMENTS)


def find(pk: int) -> Incident:
    found = query.incident_with(pk)
    if found is None:
        raise Http404(f"There is no incident #{pk}. The list of incidents has all that are open.")
    return found
