"""Coverage: what is tested as it should be, what is not and why, and the weekly report to the owners."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from frontend.components.team_scope import team_scope
from frontend.screens.coverage.queries import fleet_coverage, unverified_fleet
from frontend.ui.form_actions import actor_of
from incidents.alerts import coverage
from lakehub import wiring
from lakehub.accounts.models import Team
from quality.domain.slas import TIERS
from quality.generation.weekly_report import weekly_report


def coverage_page(request: HttpRequest) -> HttpResponse:
    now = wiring.clock.now()
    teams = list(Team.objects.filter(memberships__user=actor_of(request)).order_by("name").distinct())
    team = next((team for team in teams if team.name == request.GET.get("team")), teams[0] if teams else None)
    context = {
        "now": now,
        "fleet": fleet_coverage(now=now),
        "alerts": coverage.alert_coverage(now=now),
        "promises": list(TIERS.items()),
        "teams": teams,
        "team": team,
        "report": weekly_report(team, now=now) if team else None,
    }
    return render(request, "screens/coverage/templates/page.html", context)


def unverified_page(request: HttpRequest) -> HttpResponse:
    """What should have been verified by now, and is not: of the viewer's teams, or of all."""
    now = wiring.clock.now()
    scope = team_scope(request)
    context = {"now": now, "teams": scope, "fleet": unverified_fleet(scope, now=now)}
    return render(request, "screens/coverage/templates/unverified.html", context)
