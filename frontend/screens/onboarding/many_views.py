"""Tables of a captured connection by a pattern of their names: first what would be onboarded, then what became of each."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render

from frontend.ui.whole_numbers import parse_whole_number
from lakehub import wiring
from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import require, teams_where
from lakehub.catalog.models import Connection, DataCenter
from lakehub.catalog.onboarding.bulk import OnboardingLine, OnboardingSelection, onboard_many
from lakehub.catalog.onboarding.by_pattern import PatternRequest, keep_chosen, requests_by_pattern
from lakehub.catalog.request_permissions import require_onboarding
from lakehub.catalog.storages import takes_patterns
from lakehub.kernel.errors import Refused
from quality.domain.slas import TIERS


def onboard_tables(request: HttpRequest) -> HttpResponse:
    """GET shows what would come of the form, POST onboards it."""
    assert isinstance(request.user, User)
    teams = list(Team.objects.filter(teams_where(request.user, "onboard")).distinct())
    if not teams:
        raise PermissionDenied("To onboard tables you need to be owner or admin of a team.")
    values = request.POST if request.method == "POST" else request.GET
    connection = Connection.objects.select_related("team").filter(name=values.get("connection", "")).first()
    if connection is None:
        return redirect("onboarding")
    require(request.user, "onboard", connection.team)
    if not takes_patterns(connection.plugin):
        messages.error(
            request,
            f"Tables of {connection.name} are onboarded one by one: they have no primary key that could be read.",
        )
        return redirect("onboarding")
    context: dict[str, object] = {
        "connection": connection,
        "teams": teams,
        "tiers": list(TIERS),
        "data_centers": DataCenter.objects.all(),
        "values": values,
        "chosen_centers": values.getlist("data_centers"),
    }
    if not values.get("tables", "").strip():
        return _page(request, context)
    try:
        context["selection"] = selection = _selection(request.user, values)
        if request.method != "POST":
            return _page(request, {**context, "chosen": [each.table for each in selection.requests]})
        context["chosen"] = values.getlist("chosen")
        kept = keep_chosen(selection, values.getlist("chosen"))
        made = onboard_many(kept.requests, actor=request.user.get_username(), now=wiring.clock.now())
    except Refused as refused:
        return _page(request, {**context, "errors": refused.fields or {"tables": str(refused)}}, status=422)
    return _page(request, {**context, "selection": None, "lines": _in_order(kept.lines, made)})


def _selection(person: User, values: QueryDict) -> OnboardingSelection:
    """Raises Refused, PermissionDenied."""
    asked = PatternRequest(
        connection=values.get("connection", ""),
        tables=values.get("tables", ""),
        team=values.get("team", ""),
        tier=parse_whole_number(values.get("tier", "")),
        data_centers=values.getlist("data_centers"),
    )
    require_onboarding(person, team=asked.team, connections=[asked.connection])
    return requests_by_pattern(asked)


def _in_order(lines: Sequence[OnboardingLine], made: Sequence[OnboardingLine]) -> list[OnboardingLine]:
    return sorted((*lines, *made), key=lambda line: line.name)


def _page(request: HttpRequest, context: dict[str, object], status: int = 200) -> HttpResponse:
    return render(request, "screens/onboarding/templates/many.html", context, status=status)
