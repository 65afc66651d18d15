"""The page of one incident."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse

from frontend.components.snooze_form import snooze_text
from frontend.screens.incident import queries as query
from frontend.screens.incident import timeline
from frontend.screens.incident.form_choices import form_choices
from frontend.ui.form_actions import actor_of
from frontend.ui.live import render_live
from incidents.models import Backfill, FalsePositive, Incident, RootCause, Subscription
from incidents.record import snooze
from incidents.record.downstream_impact import affected_consumers
from incidents.record.likely_cause import likely_cause
from incidents.record.upstream import open_upstream_incidents
from lakehub import wiring
from lakehub.accounts.permissions import ROLES_BY_ACTION, can

FRAGMENTS = {"timeline": "screens/incident/templates/timeline.html"}


def incident_page(request: HttpRequest, pk: int) -> HttpResponse:
    now = wiring.clock.now()
    incident = find_incident(pk)
    detail = query.incident_detail(incident, now=now)
    runs = query.incident_results(detail)
    items = timeline.timeline_items(incident, runs)
    show = request.GET.get("show", "all")
    show = show if show in timeline.KINDS else "all"
    user = actor_of(request)
    may = {action: can(user, action, incident.dataset.team) for action in ("acknowledge", "resolve")}
    context = {
        "now": now,
        "incident": incident,
        "detail": detail,
        "records": query.visible_records(detail, user),
        "life": query.lifecycle_steps(detail),
        "cause": likely_cause(incident, now=now, spans=detail.spans),
        "plot": query.incident_plot(detail, runs, now=now),
        "items": [item for item in items if show in ("all", item.group)],
        "counts": timeline.counts_by_kind(items),
        "show": show,
        "downstream": query.reached_datasets(detail, now=now),
        "consumers": affected_consumers(incident, detail.spans, now=now),
        "similar": query.similar_incidents(incident, now=now),
        "upstream": open_upstream_incidents(incident.dataset) if incident.resolved_at is None else [],
        "snooze": snooze_text(snooze.snooze_of(incident, now=now), now=now),
        "may": may,
        "choices": form_choices(incident, detail.spans) if may["acknowledge"] else None,
        "followed": Subscription.objects.filter(user=user, dataset=incident.dataset_id).exists(),
        "roles": " or ".join(role.label for role in ROLES_BY_ACTION["acknowledge"]),
        "root_causes": RootCause.choices,
        "backfills": Backfill.choices,
        "false_positives": FalsePositive.choices,
    }
    return render_live(request, "screens/incident/templates/page.html", context, FRAGMENTS)


def find_incident(pk: int) -> Incident:
    incident = query.incident_by_pk(pk)
    if incident is None:
        raise Http404(f"There is no incident #{pk}. The list of incidents has all that are open.")
    return incident
