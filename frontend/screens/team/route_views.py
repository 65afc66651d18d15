"""Where a team hears of its incidents: its routes, and setting one."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from frontend.screens.team import route_form
from frontend.screens.team.route_form import RouteForm
from frontend.ui.form_actions import actor_of, errors_as_messages
from incidents.channels import CHANNELS, redacted_address
from incidents.domain.alerting.quiet_hours import DigestInterval
from incidents.domain.alerting.routing import AlertLabels, Severity
from incidents.models import Message, MessageState, Route
from incidents.notifications import routes
from incidents.notifications.recipients import team_recipients
from lakehub import wiring
from lakehub.accounts.models import Team
from lakehub.accounts.permissions import can, require
from lakehub.catalog.models import TIERS
from lakehub.kernel.errors import NotFound, Refused
from quality.models import Category

MAX_DIGESTS = 5
DIGEST_CHOICES = (
    (DigestInterval.NONE, "No digest"),
    (DigestInterval.HOURLY, "Every hour"),
    (DigestInterval.DAILY, "Every day"),
)
_ADDRESS_HINT = "As the channel wants it: ops@example.org, https://…, a routing key."
_ANY_MATTER = AlertLabels(0, Category.FRESHNESS, Severity.CRITICAL)


def route_list(request: HttpRequest, name: str) -> HttpResponse:
    """The routes, and the form for a new one."""
    team = _find_team(name)
    if request.method != "POST":
        return _routes_page(request, team, route_form.empty_form(actor_of(request).timezone))
    return _save(request, team, None)


def route_page(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """The same page with the form of one route."""
    team = _find_team(name)
    if request.method == "POST":
        return _save(request, team, number)
    route = _find_route(team, number)
    if not can(actor_of(request), "onboard", team):
        return redirect("team-routes", name)
    return _routes_page(request, team, route_form.form_of_route(route))


@require_POST
def remove_route(request: HttpRequest, name: str, number: int) -> HttpResponse:
    team = _find_team(name)
    actor = actor_of(request)
    require(actor, "onboard", team)
    with errors_as_messages(request):
        routes.remove_route(team, number, actor=actor.get_username(), now=wiring.clock.now())
        messages.info(request, "The route is gone. What it kept for later goes out now.")
    return redirect("team-routes", name)


def _save(request: HttpRequest, team: Team, number: int | None) -> HttpResponse:
    actor = actor_of(request)
    require(actor, "onboard", team)
    form = route_form.form_from_post(request.POST, number)
    try:
        routes.set_route(
            team, route_form.route_arguments(form), actor=actor.get_username(), now=wiring.clock.now(), number=number
        )
    except Refused as refused:
        return _routes_page(request, team, replace(form, errors=refused.fields or {"address": str(refused)}))
    except NotFound as missing:
        raise Http404(str(missing)) from None
    messages.info(request, "The route is saved." if number is not None else "The route is added.")
    return redirect("team-routes", team.name)


def _routes_page(request: HttpRequest, team: Team, form: RouteForm) -> HttpResponse:
    rows = list(Route.objects.filter(team=team).select_related("team").order_by("pk"))
    recipients = [] if rows else team_recipients(team, _ANY_MATTER, routes=rows)
    context = {
        "now": wiring.clock.now(),
        "team": team,
        "rows": rows,
        "recipients": [
            (recipient.channel, redacted_address(recipient.channel, recipient.address)) for recipient in recipients
        ],
        "form": form,
        "is_new": form.number is None,
        "address_hint": _ADDRESS_HINT if form.number is None else f"{_ADDRESS_HINT} Empty: it stays as it is.",
        "may_change": can(actor_of(request), "onboard", team),
        "channels": list(CHANNELS),
        "severities": list(Severity),
        "tiers": [str(tier) for tier in TIERS],
        "categories": Category.choices,
        "days": list(enumerate(route_form.WEEKDAYS)),
        "digests": DIGEST_CHOICES,
        "sent": team.digests.order_by("-pk")[:MAX_DIGESTS],
        "collected": Message.objects.filter(route__in=rows, state=MessageState.COLLECTED, digest=None).count(),
    }
    return render(request, "screens/team/templates/routes.html", context, status=422 if form.errors else 200)


def _find_team(name: str) -> Team:
    try:
        return routes.team_named(name)
    except NotFound as missing:
        raise Http404(str(missing)) from None


def _find_route(team: Team, number: int) -> Route:
    try:
        return routes.route_of(team, number)
    except NotFound as missing:
        raise Http404(str(missing)) from None
