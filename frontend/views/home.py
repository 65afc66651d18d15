"""The first page: what needs a decision, what is in hand, how the fleet is."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from frontend.live import render_live
from frontend.queries import home as query
from frontend.queries.scores import SPANS
from incidents import alert_coverage
from incidents.scores import overview
from incidents.scores.scope import ALL, DAYS
from lakehub import wiring
from quality.coverage import lately

FRAGMENTS = {"now": "frontend/home/now.html"}


def home(request: HttpRequest) -> HttpResponse:
    now = wiring.clock.now()
    fleet = query.fleet_health(now=now)
    decide, in_hand = query.todos(fleet, now=now)
    questions, answers = query.gate_answers(now=now)
    days = next((days for days, _ in SPANS[1:] if str(days) == request.GET.get("days")), DAYS)
    context = {
        "now": now,
        "fleet": fleet,
        "decide": decide,
        "in_hand": in_hand,
        "matrix": query.matrix(fleet),
        "running": query.in_progress(),
        "behind": query.furthest_behind(fleet),
        "questions": questions,
        "answers": answers,
        # the live part does without these
        "covered": lambda: lately(now=now),
        "alerted": lambda: alert_coverage.lately(now=now),
        "trend": lambda: overview.lately(days, now=now),
        "days": days,
        "spans": SPANS[1:],
        "scope": ALL,
    }
    return render_live(request, "frontend/home/page.html", context, FRAGMENTS)
