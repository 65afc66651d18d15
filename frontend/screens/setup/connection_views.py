"""A new connection: tried as often as wanted, then kept. Its URL goes in and is never shown again, not even in the form."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from frontend.ui.form_actions import actor_of
from frontend.ui.live import FRAGMENT_HEADER
from lakehub import wiring
from lakehub.accounts.models import Team
from lakehub.accounts.permissions import require_in_named_team, require_in_some_team, teams_where
from lakehub.catalog import connections
from lakehub.catalog.storages import url_examples
from lakehub.kernel.errors import Busy, Refused

_FIELDS = ("name", "plugin", "team")
_RESULT = "tested"
"""The id of the part that *Test connection* fills."""


def new_connection(request: HttpRequest) -> HttpResponse:
    user = actor_of(request)
    require_in_some_team(user, "connect")
    if request.method != "POST":
        return _page(request, {"team": request.GET.get("team", "")})
    values = {name: request.POST.get(name, "").strip() for name in _FIELDS}
    require_in_named_team(user, "connect", Team.objects.filter(name=values["team"]).first())
    source: dict[str, Any] = {
        "plugin": values["plugin"],
        "url": request.POST.get("url", "").strip(),
        "team": values["team"],
        "actor": user.get_username(),
        "now": wiring.clock.now(),
    }
    try:
        if request.POST.get("action") == "test":
            tested = connections.check_connection(**source)
            return _page(request, values, reached=tested.sentence, role_warning=tested.role_warning)
        connection = connections.add_connection(name=values["name"], **source)
    except Refused as refused:
        return _page(request, values, errors=refused.fields)
    except Busy as busy:
        return _page(request, values, errors={"url": str(busy)}, retry_after_s=busy.retry_after_s)
    messages.info(request, f"Connection {connection.name} of team {connection.team.name} was reached and is kept.")
    if connection.role_warning:
        messages.warning(request, connection.role_warning)
    return redirect("setup")


def _page(
    request: HttpRequest,
    values: dict[str, str],
    *,
    reached: str = "",
    role_warning: str = "",
    errors: dict[str, str] | None = None,
    retry_after_s: int = 0,
) -> HttpResponse:
    """The whole page, or for script the answer to a test alone. Status 422 where the source was not reached, 503 where it is to be
    tried again in `retry_after_s`."""
    context = {
        "entered": values,
        "errors": errors or {},
        "reached": reached,
        "role_warning": role_warning,
        "again": request.method == "POST",
        "teams": Team.objects.filter(teams_where(actor_of(request), "connect")).distinct(),
        "storages": url_examples(),
        "now": wiring.clock.now(),
    }
    fragment = request.headers.get(FRAGMENT_HEADER) == _RESULT
    template = "connection_test" if fragment else "new_connection"
    status = 200 if fragment or not errors else 503 if retry_after_s else 422
    answer = render(request, f"screens/setup/templates/{template}.html", context, status=status)
    if retry_after_s:
        answer.headers["Retry-After"] = str(retry_after_s)
    answer.headers["Vary"] = f"{FRAGMENT_HEADER}, Cookie"
    return answer
