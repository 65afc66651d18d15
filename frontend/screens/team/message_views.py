"""The messages of a team: their words by occasion, how they went, and trying whether an address is reached."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.ui.form_actions import actor_of, errors_as_messages
from incidents.channels import CHANNELS
from incidents.domain.alerting.message_template import VARIABLES
from incidents.models import Delivery
from incidents.notifications import routes, sender, templates
from incidents.notifications.templates import TemplatePreview, TemplateText
from lakehub import wiring
from lakehub.accounts.models import Team
from lakehub.accounts.permissions import can, require
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean

PAGE_SIZE = 50


def team_messages(request: HttpRequest, name: str) -> HttpResponse:
    team = _find_team(name)
    failed = request.GET.get("show") == "failed"
    rows = Delivery.objects.filter(team=team, **({"ok": False} if failed else {})).select_related("message")
    context = {
        "now": wiring.clock.now(),
        "team": team,
        "words": [
            (template, _title(template.occasion), templates.OCCASIONS[template.occasion])
            for template in templates.templates_of(team)
        ],
        "page": Paginator(rows.order_by("-at", "-pk"), PAGE_SIZE).get_page(request.GET.get("page")),
        "failed": failed,
        "channels": list(CHANNELS),
        "may_change": can(actor_of(request), "onboard", team),
    }
    return render(request, "screens/team/templates/messages.html", context)


def message_template(request: HttpRequest, name: str, occasion: str) -> HttpResponse:
    """The form of one occasion, with how it reads."""
    team, template = _find_team(name), _template_of(name, occasion)
    if request.method != "POST":
        return _template_form(request, team, template, template.subject, template.body, {})
    act = request.POST.get("act", "save")
    if act == "preview":
        subject, body = _posted_template(request)
        return _template_form(request, team, template, subject, body, templates.template_problems(subject, body))
    actor = actor_of(request)
    require(actor, "onboard", team)
    if act == "reset":
        return _reset(request, team, occasion)
    subject, body = _posted_template(request)
    try:
        templates.set_template(
            team, occasion, subject=subject, body=body, actor=actor.get_username(), now=wiring.clock.now()
        )
    except Refused as refused:
        return _template_form(request, team, template, subject, body, refused.fields)
    messages.info(request, f"The words for {occasion} are saved; the next message has them.")
    return redirect("team-messages", team.name)


@require_POST
def send_trial(request: HttpRequest, name: str) -> HttpResponse:
    """Of an address that is typed."""
    team = _find_team(name)
    channel, address = request.POST.get("channel", ""), request.POST.get("address", "").strip()
    return _send_trial(request, team, channel, address, then=reverse("team-messages", args=[name]))


@require_POST
def send_route_trial(request: HttpRequest, name: str, number: int) -> HttpResponse:
    team = _find_team(name)
    require(actor_of(request), "onboard", team)
    try:
        route = routes.route_of(team, number)
    except NotFound as missing:
        raise Http404(str(missing)) from None
    return _send_trial(request, team, route.channel, route.address, then=reverse("team-routes", args=[name]))


def _send_trial(request: HttpRequest, team: Team, channel: str, address: str, *, then: str) -> HttpResponse:
    actor = actor_of(request)
    require(actor, "onboard", team)
    with errors_as_messages(request):
        if channel not in CHANNELS:
            raise Refused(f"There is no channel `{channel}`.{did_you_mean(channel, CHANNELS)}")
        sent = sender.send_test_message(channel, address, team=team, actor=actor.get_username(), now=wiring.clock.now())
        if sent.ok:
            messages.info(request, f"{sent.address} took it over {channel}: {sent.status}, in {sent.ms:,} ms.")
        else:
            messages.error(request, f"It did not arrive over {channel}: {sent.error}")
    return redirect(then)


def _reset(request: HttpRequest, team: Team, occasion: str) -> HttpResponse:
    with errors_as_messages(request):
        templates.reset_template(team, occasion, actor=actor_of(request).get_username(), now=wiring.clock.now())
        messages.info(request, f"{occasion.capitalize()} has no words of its own any more.")
    return redirect("team-messages", team.name)


def _template_form(
    request: HttpRequest, team: Team, template: TemplateText, subject: str, body: str, errors: dict[str, str]
) -> HttpResponse:
    now = wiring.clock.now()
    preview: TemplatePreview | None = None
    if not errors:
        preview = templates.preview_template(team, template.occasion, subject=subject, body=body, now=now)
    context = {
        "now": now,
        "team": team,
        "kept": template,
        "title": _title(template.occasion),
        "what": templates.OCCASIONS[template.occasion],
        "subject": subject,
        "body": body,
        "errors": errors,
        "preview": preview,
        "variables": [(f"{{{name}}}", explanation) for name, explanation in VARIABLES.items()],
        "may_change": can(actor_of(request), "onboard", team),
    }
    return render(request, "screens/team/templates/message_template.html", context, status=422 if errors else 200)


def _title(occasion: str) -> str:
    return "ETA" if occasion == "eta" else occasion.capitalize()


def _posted_template(request: HttpRequest) -> tuple[str, str]:
    return request.POST.get("subject", "").strip(), request.POST.get("body", "").replace("\r\n", "\n").strip()


def _template_of(name: str, occasion: str) -> TemplateText:
    try:
        return templates.template_of(_find_team(name), occasion)
    except NotFound as missing:
        raise Http404(str(missing)) from None


def _find_team(name: str) -> Team:
    try:
        return routes.team_named(name)
    except NotFound as missing:
        raise Http404(str(missing)) from None
