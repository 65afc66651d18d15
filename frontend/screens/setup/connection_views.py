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
from lakehub.kernel.errors import Refused

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
            return _page(request, values, reached=connections.check_connection(**source).sentence)
        connection = connections.add_connection(name=values["name"], **source)
    except Refused as refused:
        return _page(request, values, errors=refused.fields)
    messages.info(request, f"Connection {connection.name} of team {connection.team.name} was reached and is kept.")
    return redirect("setup")


def _page(
    request: HttpRequest, values: dict[str, str], *, reached: str = "", errors: dict[str, str] | None = None
) -> HttpResponse:
    """The whole page, or for script the answer to a test alone. Status 422 where the source was not reached."""
    context = {
        "entered": values,
        "errors": errors or {},
        "reached": reached,
        "again": request.method == "POST",
        "teams": Team.objects.filter(teams_where(actor_of(request), "connect")).distinct(),
        "storages": url_examples(),
        "now": wiring.clock.now(),
    }
    fragment = request.headers.get(FRAGMENT_HEADER) == _RESULT
    template = "connection_test" if fragment else "new_connection"
    status = 422 if errors and not fragment else 200
    answer = render(request, f"screens/setup/templates/{template}.html", context, status=status)
    answer.headers["Vary"] = f"{FRAGMENT_HEADER}, Cookie"
    return answer
