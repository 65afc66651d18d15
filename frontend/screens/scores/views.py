"""The scores page and its CSV export."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from frontend.screens.scores.queries import GROUPING_LABELS, PAGE_SIZE, parse_score_filters
from incidents.scores.cached_overview import CachedScores
from lakehub import wiring
from lakehub.kernel.errors import Busy


def scores(request: HttpRequest) -> HttpResponse:
    now = wiring.clock.now()
    filters = parse_score_filters(request.GET.dict(), now=now)
    page_text, looked = request.GET.get("page", ""), CachedScores(filters.window, filters.scope, now=now)
    try:
        trend, overview = looked.trend(), looked.overview()
        groups = looked.groups(
            filters.by, int(page_text) if page_text.isdecimal() and len(page_text) < 6 else 1, PAGE_SIZE
        )
    except Busy as busy:
        return busy_page(request, busy)
    context = {
        "now": now,
        "asked": filters,
        "window": filters.window,
        "scope": filters.scope,
        "by": filters.by,
        "grouped": GROUPING_LABELS[filters.by],
        "trend": trend,
        "whole": trend.score,
        "times": overview.times,
        "page": Paginator(range(groups.count), PAGE_SIZE).get_page(groups.number),
        "groups": groups.shown,
        "noisy": overview.noisy,
    }
    return render(request, "screens/scores/templates/page.html", context)


def busy_page(request: HttpRequest, busy: Busy) -> HttpResponse:
    answer = render(request, "screens/scores/templates/busy.html", {"busy": busy}, status=503)
    answer.headers["Retry-After"] = str(busy.retry_after_s)
    return answer
