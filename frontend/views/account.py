"""Who is signed in and what they may do; the tokens of the teams that they administer; the audit log."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.timezone import make_aware
from django.views.decorators.http import require_POST, require_safe

from frontend.acting import actor_of, explained, instant
from frontend.numbers import whole
from lakehub import wiring
from lakehub.accounts import audit, tokens
from lakehub.accounts.models import Membership, Role, Team
from lakehub.accounts.permissions import ACTIONS, may_somewhere, require, require_somewhere, teams_where
from lakehub.catalog.models import DataCenter
from lakehub.kernel.errors import Refused

PAGE = 50
DAYS = 90
"""What a token lives where nothing else is said."""


@dataclass(frozen=True)
class Draft:
    """A token as it is typed."""

    values: dict[str, str] = field(default_factory=lambda: {"days": str(DAYS)})
    scopes: tuple[str, ...] = ()
    errors: dict[str, str] = field(default_factory=dict)


@require_safe
def account(request: HttpRequest) -> HttpResponse:
    user = actor_of(request)
    mine = Membership.objects.filter(user=user).select_related("team").order_by("team__name")
    context = {
        "memberships": [(one, Role(one.role).label, _may(Role(one.role))) for one in mine],
        "may_issue": may_somewhere(user, "issue"),
        "may_audit": may_somewhere(user, "audit"),
        "now": wiring.clock.now(),
    }
    return render(request, "frontend/account/page.html", context)


def token_list(request: HttpRequest) -> HttpResponse:
    """The list, with a form; what a POST has made is shown on the page that answers it, and never again."""
    user = actor_of(request)
    require_somewhere(user, "issue")
    if request.method != "POST":
        return _tokens(request, Draft())
    said = {name: request.POST.get(name, "").strip() for name in ("name", "team", "consumer", "days", "data_center")}
    draft = Draft(said, tuple(request.POST.getlist("scopes")))
    team = Team.objects.filter(name=said["team"]).first()
    if team is not None:
        require(user, "issue", team)
    try:
        _, text = tokens.issue(**_asked(draft, team), created_by=user, now=wiring.clock.now())
    except Refused as refused:
        return _tokens(request, Draft(said, draft.scopes, refused.fields))
    answer = _tokens(request, Draft(), made=text, status=201)
    answer.headers["Cache-Control"] = "no-store"
    return answer


@require_POST
def token_revoke(request: HttpRequest, prefix: str) -> HttpResponse:
    user = actor_of(request)
    require_somewhere(user, "issue")
    with explained(request):
        token = tokens.named(prefix)
        require(user, "issue", token.team)
        tokens.revoke(token, actor=user.get_username(), now=wiring.clock.now())
        messages.info(request, f"{token.name} ({prefix}) is revoked: it opens nothing any more.")
    return redirect("token-list")


@require_safe
def audit_log(request: HttpRequest) -> HttpResponse:
    require_somewhere(actor_of(request), "audit")
    asked = {name: request.GET.get(name, "").strip() for name in ("actor", "subject", "action", "since", "until")}
    errors: dict[str, str] = {}
    wanted = audit.Wanted()
    try:
        times = {name: instant(asked[name], make_aware) for name in ("since", "until")}
        wanted = audit.Wanted(asked["actor"], asked["subject"], asked["action"], **times)
    except Refused as refused:
        errors = refused.fields
    words = {name: asked[name] for name in ("actor", "subject", "action") if asked[name]}
    exact = {name: at.isoformat() for name in ("since", "until") if (at := getattr(wanted, name))}
    context = {
        "page": Paginator(audit.entries(wanted), PAGE).get_page(request.GET.get("page")),
        "asked": asked,
        "narrowed": bool(words or exact),
        "errors": errors,
        "export": urlencode(words | exact),
        "now": wiring.clock.now(),
    }
    return render(request, "frontend/account/audit.html", context, status=422 if errors else 200)


def _tokens(request: HttpRequest, draft: Draft, *, made: str = "", status: int = 200) -> HttpResponse:
    user, now = actor_of(request), wiring.clock.now()
    ended = request.GET.get("all") == "1"
    context: dict[str, Any] = {
        "page": Paginator(tokens.visible(user, now=now, ended=ended), PAGE).get_page(request.GET.get("page")),
        "ended": ended,
        "draft": draft,
        "made": made,
        "teams": Team.objects.filter(teams_where(user, "issue")).distinct(),
        "scopes": tokens.SCOPES,
        "centers": DataCenter.objects.values_list("name", flat=True),
        "longest": tokens.longest().days,
        "now": now,
    }
    return render(request, "frontend/account/tokens.html", context, status=422 if draft.errors else status)


def _asked(draft: Draft, team: Team | None) -> dict[str, Any]:
    """What the use case takes. Raises Refused for what it has no words for."""
    said, problems = draft.values, {}
    days = whole(said["days"])
    if team is None:
        problems["team"] = f"There is no team `{said['team']}`."
    if not days or not 0 < days <= tokens.longest().days:
        problems["days"] = f"`{said['days']}` is not a number of days from 1 to {tokens.longest().days}."
    if not draft.scopes:
        problems["scopes"] = "Choose at least one scope: a token without any opens nothing."
    if problems:
        raise Refused.because(problems)
    return {
        "name": said["name"],
        "team": team,
        "consumer": said["consumer"],
        "scopes": draft.scopes,
        "data_center": said["data_center"],
        "expires_at": wiring.clock.now() + timedelta(days=days or 0),
    }


def _may(role: Role) -> list[str]:
    return [action for action, roles in ACTIONS.items() if role in roles]
