"""Where a team hears of its incidents: its routes, and setting one."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from frontend import addressing
from frontend.acting import actor_of, explained
from frontend.addressing import RouteForm
from incidents.channels import CHANNELS, shown
from incidents.domain.alerting import Severity
from incidents.domain.quiet import Digest
from incidents.domain.routing import Matter
from incidents.messages import routes
from incidents.messages.addressees import of_team
from incidents.models import Message, MessageState, Route
from lakehub import wiring
from lakehub.accounts.models import Team
from lakehub.accounts.permissions import can, require
from lakehub.catalog.models import TIERS
from lakehub.kernel.errors import NotFound, Refused
from quality.models import Category

SHOWN_DIGESTS = 5
DIGESTS = ((Digest.NONE, "No digest"), (Digest.HOURLY, "Every hour"), (Digest.DAILY, "Every day"))
_ADDRESS = "As the channel wants it: ops@example.org, https://…, a routing key."
_ANYTHING = Matter(0, Category.FRESHNESS, Severity.CRITICAL)


def page(request: HttpRequest, name: str) -> HttpResponse:
    """The routes, and the form for a new one."""
    team = _team(name)
    if request.method != "POST":
        return _page(request, team, addressing.empty(actor_of(request).timezone))
    return _put(request, team, None)


def one(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """The same page with the form of one route."""
    team = _team(name)
    if request.method == "POST":
        return _put(request, team, number)
    route = _route(team, number)
    if not can(actor_of(request), "onboard", team):
        return redirect("team-routes", name)
    return _page(request, team, addressing.of_route(route))


@require_POST
def remove(request: HttpRequest, name: str, number: int) -> HttpResponse:
    team = _team(name)
    actor = actor_of(request)
    require(actor, "onboard", team)
    with explained(request):
        routes.remove(team, number, actor=actor.get_username(), now=wiring.clock.now())
        messages.info(request, "The route is gone. What it kept for later goes out now.")
    return redirect("team-routes", name)


def _put(request: HttpRequest, team: Team, number: int | None) -> HttpResponse:
    actor = actor_of(request)
    require(actor, "onboard", team)
    form = addressing.typed(request.POST, number)
    try:
        routes.put(team, addressing.asked(form), actor=actor.get_username(), now=wiring.clock.now(), number=number)
    except Refused as refused:
        return _page(request, team, replace(form, errors=refused.fields or {"address": str(refused)}))
    except NotFound as missing:
        raise Http404(str(missing)) from None
    messages.info(request, "The route is saved." if number is not None else "The route is added.")
    return redirect("team-routes", team.name)


def _page(request: HttpRequest, team: Team, form: RouteForm) -> HttpResponse:
    rows = list(Route.objects.filter(team=team).select_related("team").order_by("pk"))
    told = [] if rows else of_team(team, _ANYTHING, routes=rows)
    context = {
        "now": wiring.clock.now(),
        "team": team,
        "rows": rows,
        "told": [(one.channel, shown(one.channel, one.address)) for one in told],
        "form": form,
        "is_new": form.number is None,
        "address_hint": _ADDRESS if form.number is None else f"{_ADDRESS} Empty: it stays as it is.",
        "may_change": can(actor_of(request), "onboard", team),
        "channels": list(CHANNELS),
        "severities": list(Severity),
        "tiers": [str(tier) for tier in TIERS],
        "categories": Category.choices,
        "days": list(enumerate(addressing.DAYS)),
        "digests": DIGESTS,
        "sent": team.digests.order_by("-pk")[:SHOWN_DIGESTS],
        "collected": Message.objects.filter(route__in=rows, state=MessageState.COLLECTED, digest=None).count(),
    }
    return render(request, "frontend/team/routes.html", context, status=422 if form.errors else 200)


def _team(name: str) -> Team:
    try:
        return routes.team_named(name)
    except NotFound as missing:
        raise Http404(str(missing)) from None


def _route(team: Team, number: int) -> Route:
    try:
        return routes.route_of(team, number)
    except NotFound as missing:
        raise Http404(str(missing)) from None
