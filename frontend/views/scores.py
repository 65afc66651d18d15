"""The scores: how good the alarms and the data were over a window, by group, and which tests to retire or to tune."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from frontend.queries import incidents as incident_query
from frontend.queries.scores import BY, PAGE, asked_of
from incidents.domain.resolution import FalsePositive
from incidents.scores.behind import NUMBERS, behind
from incidents.scores.overview import Looked
from incidents.scores.scope import wanted_scope, wanted_window
from incidents.scores.scoring import Score, named, scores_of
from incidents.scores.turns import turn
from lakehub import wiring
from lakehub.kernel.errors import Busy, Refused
from lakehub.kernel.sheets import lines, safe

_PIECE = 500
COLUMNS = (
    "by", "name", "dataset", "test", "from", "to", "tp_s", "fp_s", "fn_s", "precision", "recall", "tp_incidents",
    "fp_incidents", "fn_incidents", "unsettled_incidents", "incident_share", "quality", "queries_failed", "queries_asked",
)  # fmt: skip


def scores(request: HttpRequest) -> HttpResponse:
    now = wiring.clock.now()
    asked = asked_of(request.GET.dict(), now=now)
    said, looked = request.GET.get("page", ""), Looked(asked.window, asked.scope, now=now)
    try:
        trend, seen = looked.trend(), looked.overview()
        groups = looked.groups(asked.by, int(said) if said.isdecimal() and len(said) < 6 else 1, PAGE)
    except Busy as busy:
        return _busy(request, busy)
    context = {
        "now": now,
        "asked": asked,
        "window": asked.window,
        "scope": asked.scope,
        "by": asked.by,
        "grouped": BY[asked.by],
        "trend": trend,
        "whole": trend.score,
        "times": seen.times,
        "page": Paginator(range(groups.count), PAGE).get_page(groups.number),
        "groups": groups.shown,
        "noisy": seen.noisy,
    }
    return render(request, "frontend/scores/page.html", context)


def _busy(request: HttpRequest, busy: Busy) -> HttpResponse:
    answer = render(request, "frontend/scores/busy.html", {"busy": busy}, status=503)
    answer.headers["Retry-After"] = str(busy.wait_s)
    return answer


def scores_csv(request: HttpRequest) -> HttpResponseBase:
    """All groups, whatever the page shows; what cannot be understood is left out, as there."""
    now = wiring.clock.now()
    asked = asked_of(request.GET.dict(), now=now)
    try:
        with turn():
            found = scores_of(asked.window, now=now, scope=asked.scope)
            by, groups = asked.by, found.by(asked.by)
    except Busy as busy:
        return _busy(request, busy)

    def rows() -> Iterator[tuple[object, ...]]:
        yield COLUMNS
        ends = (found.window.start.isoformat(), found.window.end.isoformat())
        for at in range(0, len(groups), _PIECE):
            piece = groups[at : at + _PIECE]
            for one in named(piece) if by == "test" else piece:
                yield _row(by, one, ends)

    return StreamingHttpResponse(
        lines(rows()),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="scores-by-{by}.csv"'},
    )


def _row(by: str, score: Score, ends: tuple[str, str]) -> tuple[object, ...]:
    told = score.durations
    queries = (score.queries.failed, score.queries.asked) if score.queries else ("", "")
    shares = [told.precision, told.recall, score.incident_share, score.quality]
    precision, recall, share, quality = ("" if one is None else f"{one:.6f}" for one in shares)
    return (
        by, safe(score.name), safe(score.dataset), safe(score.test), *ends,
        *(f"{one.total_seconds():.0f}" for one in (told.tp, told.fp, told.fn)), precision, recall,
        score.real, score.false, score.missed, len(score.unsettled), share, quality, *queries,
    )  # fmt: skip


def incidents_behind(request: HttpRequest) -> HttpResponse:
    """The list of incidents, narrowed to those behind a number of the scores."""
    now, said = wiring.clock.now(), request.GET.dict()
    number, kind = said.get("behind", ""), said.get("kind", "")
    context: dict[str, object] = {"now": now, "number": number, "kind": kind, "problems": {}}
    try:
        window, scope = wanted_window(said, now=now), wanted_scope(said)
        found = behind(number, window, scope, kind=kind)
    except Refused as error:
        context["problems"] = error.fields
        return render(request, "frontend/scores/behind.html", context, status=422)
    wanted = found.select_related("dataset__team", "assignee", "report__copy__data_center")
    page = Paginator(wanted, PAGE).get_page(request.GET.get("page"))
    context |= {
        "window": window,
        "scope": scope,
        "said": NUMBERS[number],
        "kind": FalsePositive(kind).replace("_", " ") if kind in list(FalsePositive) else kind,
        "page": page,
        "rows": incident_query.rows(list(page.object_list), now=now),
    }
    return render(request, "frontend/scores/behind.html", context)
