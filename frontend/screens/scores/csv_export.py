"""The scores as CSV."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase

from frontend.screens.scores.queries import parse_score_filters
from frontend.screens.scores.views import busy_page
from incidents.scores.scoring import Score, scores_of, with_test_names
from incidents.scores.single_flight import exclusive_computation
from lakehub import wiring
from lakehub.kernel.errors import Busy
from lakehub.kernel.output.spreadsheet_csv import csv_lines, escape_formula

_CHUNK = 500
COLUMNS = (
    "by", "name", "dataset", "test", "from", "to", "tp_s", "fp_s", "fn_s", "precision", "recall", "tp_incidents",
    "fp_incidents", "fn_incidents", "unsettled_incidents", "incident_share", "quality", "queries_failed", "queries_asked",
)  # fmt: skip


def scores_csv(request: HttpRequest) -> HttpResponseBase:
    """All groups, whatever the page shows; what cannot be understood is left out, as there."""
    now = wiring.clock.now()
    filters = parse_score_filters(request.GET.dict(), now=now)
    try:
        with exclusive_computation():
            computed = scores_of(filters.window, now=now, scope=filters.scope)
            by, groups = filters.by, computed.by(filters.by)
    except Busy as busy:
        return busy_page(request, busy)

    def rows() -> Iterator[tuple[object, ...]]:
        yield COLUMNS
        ends = (computed.window.start.isoformat(), computed.window.end.isoformat())
        for at in range(0, len(groups), _CHUNK):
            piece = groups[at : at + _CHUNK]
            for score in with_test_names(piece) if by == "test" else piece:
                yield _csv_row(by, score, ends)

    return StreamingHttpResponse(
        csv_lines(rows()),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="scores-by-{by}.csv"'},
    )


def _csv_row(by: str, score: Score, ends: tuple[str, str]) -> tuple[object, ...]:
    durations = score.durations
    queries = (score.queries.failed, score.queries.asked) if score.queries else ("", "")
    shares = [durations.precision, durations.recall, score.incident_share, score.quality]
    precision, recall, share, quality = ("" if value is None else f"{value:.6f}" for value in shares)
    return (
        by, escape_formula(score.name), escape_formula(score.dataset), escape_formula(score.test), *ends,
        *(f"{duration.total_seconds():.0f}" for duration in (durations.tp, durations.fp, durations.fn)), precision, recall,
        score.real, score.false, score.missed, len(score.unsettled), share, quality, *queries,
    )  # fmt: skip
