"""The first page: what needs a decision, what is in hand, how the fleet is."""

from __future__ import annotations

from functools import cache, partial

from django.http import HttpRequest, HttpResponse

from frontend.components.score_windows import WINDOW_CHOICES
from frontend.components.team_scope import team_scope
from frontend.screens.home import queries as query
from frontend.ui.live import render_live
from incidents.alerts import coverage
from incidents.scores import cached_overview
from incidents.scores.scope import ALL_DATASETS, DEFAULT_DAYS
from lakehub import wiring
from lakehub.accounts.permissions import teams_permitting
from lakehub.catalog.models import Dataset
from quality.generation.coverage import recent_coverage
from quality.state.unverified import unverified_count

FRAGMENTS = {
    "now": "screens/home/templates/attention.html",
    "run": "screens/home/templates/running.html",
}


def home(request: HttpRequest) -> HttpResponse:
    now = wiring.clock.now()
    scope = team_scope(request)
    fleet = query.fleet_health(scope, now=now)
    may = cache(partial(teams_permitting, request.user))
    decide, in_hand = query.todo_groups(fleet, scope, may, now=now)
    questions, answers = query.gate_question_counts(now=now)
    days = next((days for days, _ in WINDOW_CHOICES[1:] if str(days) == request.GET.get("days")), DEFAULT_DAYS)
    context = {
        "now": now,
        "fleet": fleet,
        "decide": decide,
        "in_hand": in_hand,
        "matrix": query.tier_matrix(fleet),
        "running": query.running_jobs(scope, now=now),
        "behind": query.longest_lags(fleet),
        "questions": questions,
        "answers": answers,
        # the live part does without these
        "covered": lambda: recent_coverage(now=now),
        "unverified": lambda: unverified_count(scope.where("test__dataset__team"), now=now),
        "alerted": lambda: coverage.cached_coverage(now=now),
        "trend": lambda: cached_overview.recent_trend(days, now=now),
        "days": days,
        "spans": WINDOW_CHOICES[1:],
        "scope": ALL_DATASETS,
        "teams": scope,
        "may_begin": lambda: query.may_begin(request.user),
        "any_dataset": bool(fleet) or Dataset.objects.filter(offboarded_at=None).exists(),
    }
    return render_live(request, "screens/home/templates/page.html", context, FRAGMENTS)
