"""Coverage: what is tested as it should be, what is not and why, and the weekly report to the owners."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from frontend.acting import actor_of
from frontend.queries.coverage import fleet
from incidents import alert_coverage
from lakehub import wiring
from lakehub.accounts.models import Team
from quality.domain.tiers import TIERS
from quality.reports import weekly


def coverage(request: HttpRequest) -> HttpResponse:
    now = wiring.clock.now()
    teams = list(Team.objects.filter(memberships__user=actor_of(request)).order_by("name").distinct())
    team = next((one for one in teams if one.name == request.GET.get("team")), teams[0] if teams else None)
    context = {
        "now": now,
        "fleet": fleet(now=now),
        "alerts": alert_coverage.coverage(now=now),
        "promises": list(TIERS.items()),
        "teams": teams,
        "team": team,
        "report": weekly(team, now=now) if team else None,
    }
    return render(request, "frontend/coverage/page.html", context)
