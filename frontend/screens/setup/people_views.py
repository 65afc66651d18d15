"""People and their roles: a new person with a first password, shown once; who is in a team, with which role."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from frontend.screens.setup.views import require_operator_page
from frontend.ui.form_actions import actor_of, errors_as_messages
from lakehub import wiring
from lakehub.accounts import teams
from lakehub.accounts.models import Role, Team, User
from lakehub.accounts.permissions import can, require
from lakehub.kernel.errors import Conflict, NotFound, Refused

MAX_MEMBERS = 500
_MAX_SUGGESTED = 200
ROLES = (
    (Role.VIEWER, "looks at everything, asks the gate, reports what is wrong"),
    (Role.OWNER, "onboards datasets, writes tests, and acts on incidents"),
    (Role.ON_CALL, "acts on incidents, but changes no dataset"),
    (Role.ADMIN, "does all of it, and connections, tokens and roles"),
)


def new_person(request: HttpRequest) -> HttpResponse:
    """What a POST has made is shown on the page that answers it, and never again."""
    actor = require_operator_page(request)
    context: dict[str, Any] = {"entered": {}, "errors": {}, "teams": Team.objects.all(), "roles": ROLES}
    status = 200
    if request.method == "POST":
        values = {name: request.POST.get(name, "").strip() for name in ("username", "full_name", "email")}
        now = wiring.clock.now()
        try:
            person, password = teams.add_person(**values, actor=actor, now=now)
        except Refused as refused:
            context |= {"entered": values, "errors": refused.fields}
            status = 422
        else:
            context |= {"person": person, "password": password}
            status = 201
    return render(request, "screens/setup/templates/new_person.html", context, status=status)


def members(request: HttpRequest, name: str) -> HttpResponse:
    """The list, with a form for who may set roles."""
    team, actor = _find_team(name), actor_of(request)
    if request.method != "POST":
        return _members_page(request, team, {"username": request.GET.get("person", "")})
    require(actor, "set roles", team)
    values = {name: request.POST.get(name, "").strip() for name in ("username", "role")}
    try:
        membership = teams.set_role(team, **values, actor=actor, now=wiring.clock.now())
    except Refused as refused:
        return _members_page(request, team, values, refused.fields)
    except Conflict as conflict:
        messages.warning(request, str(conflict))
    else:
        messages.info(request, f"{values['username']} is {membership.get_role_display()} of {team.name}.")
    return redirect("team-members-page", team.name)


@require_POST
def remove_member(request: HttpRequest, name: str) -> HttpResponse:
    team, actor = _find_team(name), actor_of(request)
    require(actor, "set roles", team)
    with errors_as_messages(request):
        username = request.POST.get("username", "")
        teams.remove_member(team, username, actor=actor, now=wiring.clock.now())
        messages.info(request, f"{username} is no longer in team {team.name}.")
    return redirect("team-members-page", team.name)


def _members_page(
    request: HttpRequest, team: Team, values: dict[str, str], errors: dict[str, str] | None = None
) -> HttpResponse:
    may_set = can(actor_of(request), "set roles", team)
    people = User.objects.filter(is_active=True).order_by("username").values_list("username", flat=True)
    context = {
        "now": wiring.clock.now(),
        "team": team,
        "members": team.memberships.select_related("user").order_by("user__username")[:MAX_MEMBERS],
        "roles": ROLES,
        "may_set": may_set,
        "people": people[:_MAX_SUGGESTED] if may_set else [],
        "entered": values,
        "errors": errors or {},
    }
    return render(request, "screens/setup/templates/members.html", context, status=422 if errors else 200)


def _find_team(name: str) -> Team:
    try:
        return teams.team_named(name)
    except NotFound as missing:
        raise Http404(str(missing)) from None
