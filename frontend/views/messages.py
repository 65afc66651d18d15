"""The messages of a team: their words by occasion, how they went, and trying whether an address is reached."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.acting import actor_of, explained
from incidents.channels import CHANNELS
from incidents.messages import delivering, phrasing, routes, telling
from incidents.messages.phrasing import Preview, Words
from incidents.models import Delivery
from lakehub import wiring
from lakehub.accounts.models import Team
from lakehub.accounts.permissions import can, require
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean

PAGE = 50


def page(request: HttpRequest, name: str) -> HttpResponse:
    team = _team(name)
    failed = request.GET.get("show") == "failed"
    rows = Delivery.objects.filter(team=team, **({"ok": False} if failed else {})).select_related("message")
    context = {
        "now": wiring.clock.now(),
        "team": team,
        "words": [(one, _title(one.occasion), phrasing.OCCASIONS[one.occasion]) for one in phrasing.of_team(team)],
        "page": Paginator(rows.order_by("-at", "-pk"), PAGE).get_page(request.GET.get("page")),
        "failed": failed,
        "channels": list(CHANNELS),
        "may_change": can(actor_of(request), "onboard", team),
    }
    return render(request, "frontend/team/messages.html", context)


def words(request: HttpRequest, name: str, occasion: str) -> HttpResponse:
    """The form of one occasion, with how it reads."""
    team, kept = _team(name), _words(name, occasion)
    if request.method != "POST":
        return _form(request, team, kept, kept.subject, kept.body, {})
    act = request.POST.get("act", "save")
    if act == "preview":
        subject, body = _typed(request)
        return _form(request, team, kept, subject, body, phrasing.problems_of(subject, body))
    actor = actor_of(request)
    require(actor, "onboard", team)
    if act == "reset":
        return _reset(request, team, occasion)
    subject, body = _typed(request)
    try:
        phrasing.put(team, occasion, subject=subject, body=body, actor=actor.get_username(), now=wiring.clock.now())
    except Refused as refused:
        return _form(request, team, kept, subject, body, refused.fields)
    messages.info(request, f"The words for {occasion} are saved; the next message has them.")
    return redirect("team-messages", team.name)


@require_POST
def trial(request: HttpRequest, name: str) -> HttpResponse:
    """Of an address that is typed."""
    team = _team(name)
    channel, address = request.POST.get("channel", ""), request.POST.get("address", "").strip()
    return _try(request, team, channel, address, then=reverse("team-messages", args=[name]))


@require_POST
def trial_of_route(request: HttpRequest, name: str, number: int) -> HttpResponse:
    team = _team(name)
    require(actor_of(request), "onboard", team)
    try:
        route = routes.route_of(team, number)
    except NotFound as missing:
        raise Http404(str(missing)) from None
    return _try(request, team, route.channel, route.address, then=reverse("team-routes", args=[name]))


def _try(request: HttpRequest, team: Team, channel: str, address: str, *, then: str) -> HttpResponse:
    actor = actor_of(request)
    require(actor, "onboard", team)
    with explained(request):
        if channel not in CHANNELS:
            raise Refused(f"There is no channel `{channel}`.{did_you_mean(channel, CHANNELS)}")
        sent = delivering.try_out(channel, address, team=team, actor=actor.get_username(), now=wiring.clock.now())
        if sent.ok:
            messages.info(request, f"{sent.address} took it over {channel}: {sent.status}, in {sent.ms:,} ms.")
        else:
            messages.error(request, f"It did not arrive over {channel}: {sent.error}")
    return redirect(then)


def _reset(request: HttpRequest, team: Team, occasion: str) -> HttpResponse:
    with explained(request):
        phrasing.reset(team, occasion, actor=actor_of(request).get_username(), now=wiring.clock.now())
        messages.info(request, f"{occasion.capitalize()} has no words of its own any more.")
    return redirect("team-messages", team.name)


def _form(
    request: HttpRequest, team: Team, kept: Words, subject: str, body: str, errors: dict[str, str]
) -> HttpResponse:
    now = wiring.clock.now()
    preview: Preview | None = None
    if not errors:
        preview = phrasing.preview(team, kept.occasion, subject=subject, body=body, now=now)
    context = {
        "now": now,
        "team": team,
        "kept": kept,
        "title": _title(kept.occasion),
        "what": phrasing.OCCASIONS[kept.occasion],
        "subject": subject,
        "body": body,
        "errors": errors,
        "preview": preview,
        "variables": [(f"{{{name}}}", what) for name, what in telling.VARIABLES.items()],
        "may_change": can(actor_of(request), "onboard", team),
    }
    return render(request, "frontend/team/words.html", context, status=422 if errors else 200)


def _title(occasion: str) -> str:
    return "ETA" if occasion == "eta" else occasion.capitalize()


def _typed(request: HttpRequest) -> tuple[str, str]:
    return request.POST.get("subject", "").strip(), request.POST.get("body", "").replace("\r\n", "\n").strip()


def _words(name: str, occasion: str) -> Words:
    try:
        return phrasing.of_occasion(_team(name), occasion)
    except NotFound as missing:
        raise Http404(str(missing)) from None


def _team(name: str) -> Team:
    try:
        return routes.team_named(name)
    except NotFound as missing:
        raise Http404(str(missing)) from None
