"""Who is signed in and what they may do; the tokens of the teams that they administer; the audit log."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.timezone import make_aware
from django.views.decorators.http import require_POST, require_safe

from frontend.ui.form_actions import actor_of, errors_as_messages, parse_local_time
from frontend.ui.whole_numbers import parse_whole_number
from lakehub import wiring
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Membership, Role, Team, User
from lakehub.accounts.permissions import (
    ROLES_BY_ACTION,
    can_in_some_team,
    is_operator,
    require,
    require_in_some_team,
    teams_where,
)
from lakehub.accounts.recent_sign_in import needs_recent_sign_in, sign_in_again_url, signed_in_recently
from lakehub.accounts.sign_in import second_step, sessions
from lakehub.accounts.sign_in.session_store import key_digest
from lakehub.accounts.tokens import api_tokens
from lakehub.catalog.models import DataCenter
from lakehub.kernel.errors import Refused

PAGE_SIZE = 50
DEFAULT_TOKEN_DAYS = 90
"""What a token lives where nothing else is said."""


@dataclass(frozen=True)
class TokenForm:
    """A token as it is typed."""

    values: dict[str, str] = field(default_factory=lambda: {"days": str(DEFAULT_TOKEN_DAYS)})
    scopes: tuple[str, ...] = ()
    errors: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SessionRow:
    """A browser in which the person is signed in."""

    number: int
    browser: str
    address: str
    begun_at: datetime
    last_seen_at: datetime
    is_this_one: bool


@require_safe
def account(request: HttpRequest) -> HttpResponse:
    user = actor_of(request)
    memberships = Membership.objects.filter(user=user).select_related("team").order_by("team__name")
    context = {
        "memberships": [
            (membership, Role(membership.role).label, _actions_of_role(Role(membership.role)))
            for membership in memberships
        ],
        "sessions": _session_rows(request, user),
        "has_second_step": second_step.is_enrolled(user),
        "has_password": user.has_usable_password(),
        "may_issue": can_in_some_team(user, "issue"),
        "may_audit": can_in_some_team(user, "audit"),
        "now": wiring.clock.now(),
    }
    return render(request, "screens/account/templates/page.html", context)


def _session_rows(request: HttpRequest, person: User) -> list[SessionRow]:
    """The sessions' times are the wall's; the page's clock may be ahead of it."""
    ahead, this = wiring.clock.ahead(), key_digest(request.session.session_key or "")
    return [
        SessionRow(row.pk, row.browser, row.address, row.begun_at + ahead, row.last_seen_at + ahead, row.digest == this)
        for row in sessions.live_sessions(person)[: sessions.MAX_SESSIONS]
    ]


@needs_recent_sign_in(then="token-list")
def token_list(request: HttpRequest) -> HttpResponse:
    """The list, with a form; what a POST has made is shown on the page that answers it, and never again."""
    user = actor_of(request)
    require_in_some_team(user, "issue")
    if request.method != "POST":
        return _token_page(request, TokenForm())
    values = {name: request.POST.get(name, "").strip() for name in ("name", "team", "consumer", "days", "data_center")}
    draft = TokenForm(values, tuple(request.POST.getlist("scopes")))
    team = Team.objects.filter(name=values["team"]).first()
    if team is not None:
        require(user, "issue", team)
    try:
        _, text = api_tokens.issue_token(**_token_arguments(draft, team), created_by=user, now=wiring.clock.now())
    except Refused as refused:
        return _token_page(request, TokenForm(values, draft.scopes, refused.fields))
    return _token_page(request, TokenForm(), token_text=text, status=201)


@require_POST
def token_revoke(request: HttpRequest, prefix: str) -> HttpResponse:
    user = actor_of(request)
    require_in_some_team(user, "issue")
    with errors_as_messages(request):
        token = api_tokens.token_by_prefix(prefix)
        require(user, "issue", token.team)
        api_tokens.revoke_token(token, actor=user.get_username(), now=wiring.clock.now())
        messages.info(request, f"{token.name} ({prefix}) is revoked: it opens nothing any more.")
    return redirect("token-list")


@require_safe
def audit_log_page(request: HttpRequest) -> HttpResponse:
    reader = actor_of(request)
    require_in_some_team(reader, "audit")
    parameters = {name: request.GET.get(name, "").strip() for name in ("actor", "subject", "action", "since", "until")}
    errors: dict[str, str] = {}
    audit_filter = audit_log.AuditFilter()
    try:
        times = {name: parse_local_time(parameters[name], make_aware) for name in ("since", "until")}
        audit_filter = audit_log.AuditFilter(parameters["actor"], parameters["subject"], parameters["action"], **times)
    except Refused as refused:
        errors = refused.fields
    words = {name: parameters[name] for name in ("actor", "subject", "action") if parameters[name]}
    exact = {name: at.isoformat() for name in ("since", "until") if (at := getattr(audit_filter, name))}
    context = {
        "page": Paginator(audit_log.find_entries(audit_filter, reader=reader), PAGE_SIZE).get_page(
            request.GET.get("page")
        ),
        "is_operator": is_operator(reader),
        "asked": parameters,
        "narrowed": bool(words or exact),
        "errors": errors,
        "export": urlencode(words | exact),
        "now": wiring.clock.now(),
    }
    return render(request, "screens/account/templates/audit.html", context, status=422 if errors else 200)


def _token_page(request: HttpRequest, draft: TokenForm, *, token_text: str = "", status: int = 200) -> HttpResponse:
    user, now = actor_of(request), wiring.clock.now()
    ended = request.GET.get("all") == "1"
    context: dict[str, Any] = {
        "page": Paginator(api_tokens.visible_tokens(user, now=now, ended=ended), PAGE_SIZE).get_page(
            request.GET.get("page")
        ),
        "ended": ended,
        "draft": draft,
        "made": token_text,
        "teams": Team.objects.filter(teams_where(user, "issue")).distinct(),
        "scopes": api_tokens.SCOPES,
        "centers": DataCenter.objects.values_list("name", flat=True),
        "longest": api_tokens.max_lifetime().days,
        "sign_in_again": "" if signed_in_recently(request.session) else sign_in_again_url(reverse("token-list")),
        "now": now,
    }
    return render(request, "screens/account/templates/tokens.html", context, status=422 if draft.errors else status)


def _token_arguments(draft: TokenForm, team: Team | None) -> dict[str, Any]:
    """What the use case takes. Raises Refused for what it has no words for."""
    values, problems = draft.values, {}
    days = parse_whole_number(values["days"])
    if team is None:
        problems["team"] = f"There is no team `{values['team']}`."
    if not days or not 0 < days <= api_tokens.max_lifetime().days:
        problems["days"] = f"`{values['days']}` is not a number of days from 1 to {api_tokens.max_lifetime().days}."
    if not draft.scopes:
        problems["scopes"] = "Choose at least one scope: a token without any opens nothing."
    if problems:
        raise Refused.for_fields(problems)
    return {
        "name": values["name"],
        "team": team,
        "consumer": values["consumer"],
        "scopes": draft.scopes,
        "data_center": values["data_center"],
        "expires_at": wiring.clock.now() + timedelta(days=days or 0),
    }


def _actions_of_role(role: Role) -> list[str]:
    return [action for action, roles in ROLES_BY_ACTION.items() if role in roles]
