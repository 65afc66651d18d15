"""The incidents behind a score, as a list."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from frontend.components import incident_rows as incident_query
from frontend.screens.incidents.inbox import PAGE_SIZE
from incidents.domain.incident.resolution import FalsePositive
from incidents.scores.drilldown import DRILLDOWN_NUMBERS, drilldown_incidents
from incidents.scores.scope import parse_scope, parse_window
from lakehub import wiring
from lakehub.kernel.errors import Refused


def incidents_behind_score(request: HttpRequest) -> HttpResponse:
    """The list of incidents, narrowed to those behind a number of the scores."""
    now, parameters = wiring.clock.now(), request.GET.dict()
    number, kind = parameters.get("behind", ""), parameters.get("kind", "")
    context: dict[str, object] = {"now": now, "number": number, "kind": kind, "problems": {}}
    try:
        window, scope = parse_window(parameters, now=now), parse_scope(parameters)
        incidents = drilldown_incidents(number, window, scope, kind=kind)
    except Refused as error:
        context["problems"] = error.fields
        return render(request, "screens/incidents/templates/drilldown.html", context, status=422)
    rows = incidents.select_related("dataset__team", "assignee", "report__copy__data_center")
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    context |= {
        "window": window,
        "scope": scope,
        "description": DRILLDOWN_NUMBERS[number],
        "kind": FalsePositive(kind).replace("_", " ") if kind in list(FalsePositive) else kind,
        "page": page,
        "rows": incident_query.incident_rows(list(page.object_list), now=now),
    }
    return render(request, "screens/incidents/templates/drilldown.html", context)
