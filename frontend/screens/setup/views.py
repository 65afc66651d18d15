"""The first hour: what the instance still needs, in order; and the forms of teams and data centers."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from frontend.screens.setup import queries
from frontend.ui.form_actions import actor_of
from lakehub import wiring
from lakehub.accounts import teams
from lakehub.accounts.models import User
from lakehub.accounts.permissions import is_operator
from lakehub.catalog import data_centers
from lakehub.catalog.models import DataCenter
from lakehub.kernel.errors import Refused


@require_safe
def setup(request: HttpRequest) -> HttpResponse:
    user = actor_of(request)
    steps = queries.setup_steps(user)
    context = {
        "now": wiring.clock.now(),
        "steps": steps,
        "next_step": queries.next_step(steps),
        "teams": queries.teams_with_sizes(),
        "data_centers": DataCenter.objects.all()[: queries.MAX_SHOWN],
        "connections": queries.visible_connections(user),
    }
    return render(request, "screens/setup/templates/page.html", context)


def new_team(request: HttpRequest) -> HttpResponse:
    actor = require_operator_page(request)
    if request.method != "POST":
        return _form_page(request, "new_team", {})
    values = {name: request.POST.get(name, "").strip() for name in ("name", "email")}
    try:
        team = teams.add_team(**values, actor=actor, now=wiring.clock.now())
    except Refused as refused:
        return _form_page(request, "new_team", values, refused.fields)
    messages.info(request, f"Team {team.name} is there, and you are its admin.")
    return redirect("setup")


def new_data_center(request: HttpRequest) -> HttpResponse:
    actor = require_operator_page(request)
    if request.method != "POST":
        return _form_page(request, "new_data_center", {})
    values = {name: request.POST.get(name, "").strip() for name in ("name", "lake_uri")}
    try:
        center = data_centers.add_data_center(**values, actor=actor.get_username(), now=wiring.clock.now())
    except Refused as refused:
        return _form_page(request, "new_data_center", values, refused.fields)
    messages.info(request, f"Data center {center.name} keeps its lake at {center.lake_uri}.")
    return redirect("setup")


def require_operator_page(request: HttpRequest) -> User:
    """Who acts. Raises PermissionDenied."""
    actor = actor_of(request)
    if not is_operator(actor):
        raise PermissionDenied("To do this you need to be an administrator of Lakehub (a superuser).")
    return actor


def _form_page(
    request: HttpRequest, form: str, values: dict[str, str], errors: dict[str, str] | None = None
) -> HttpResponse:
    context = {"entered": values, "errors": errors or {}, "now": wiring.clock.now()}
    return render(request, f"screens/setup/templates/{form}.html", context, status=422 if errors else 200)
