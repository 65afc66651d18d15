"""Scores over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents.scores.noise import noisy_tests
from incidents.scores.reactions import reactions_of
from incidents.scores.scope import DAYS, MOST_DAYS, Scope, wanted_scope, wanted_window
from incidents.scores.scoring import GROUPINGS, Score, Scores, named, scores_of
from incidents.scores.turns import turn
from incidents.shapes import scores as shapes
from incidents.shapes.common import RangeSerializer
from lakehub import wiring
from lakehub.openapi import ErrorSerializer
from lakehub.paging import Pages
from quality.models import Category

WINDOW = [
    OpenApiParameter("from", str, description="A date of UTC, or a time with its offset."),
    OpenApiParameter("to", str, description="Not included; now, if not given."),
    OpenApiParameter("days", int, description=f"Instead of `from`: so many days, {MOST_DAYS} at most; else {DAYS}."),
]
SCOPE = [
    OpenApiParameter("dataset", str),
    OpenApiParameter("team", str),
    OpenApiParameter("tier", int),
    OpenApiParameter("category", str, enum=Category.values),
]
BUSY = OpenApiResponse(
    ErrorSerializer, "Scores are being computed for others; `Retry-After` says in how many seconds to ask again."
)


class ScoresOfWindow(APIView):
    """How good alarms and data were."""

    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(
        parameters=[
            *WINDOW,
            *SCOPE,
            OpenApiParameter("by", str, enum=GROUPINGS),
            OpenApiParameter("limit", int, description="Groups of a page."),
            OpenApiParameter("offset", int),
        ],
        responses={200: shapes.ScoresSerializer, 503: BUSY},
    )
    def get(self, request: Request) -> Response:
        """Precision, recall, data-level and query-level scores of `[from, to)`, and how long it took to react."""
        with turn():
            return Response(self._said(request))

    def _said(self, request: Request) -> dict[str, Any]:
        found = asked_for(request)
        by = request.query_params.get("by", "")
        groups = found.by(by) if by else []
        shown = Pages().paginate_queryset(groups, request) if groups else []
        page: list[Score] = list(shown or ())
        whole = found.whole
        return {
            **shapes.ScoreSerializer(whole).data,
            "window": RangeSerializer(found.window).data,
            "unsettled": whole.unsettled[: shapes.MOST_NAMED],
            "times": shapes.ReactionsSerializer(reactions_of(found.window, found.scope)).data,
            "by": by,
            "groups_count": len(groups),
            "groups": [shapes.GroupSerializer(one).data for one in (named(page) if by == "test" else page)],
        }


class NoisyTests(APIView):
    """Tests to retire or to tune."""

    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(parameters=[*WINDOW, *SCOPE], responses={200: shapes.NoisySerializer(many=True), 503: BUSY})
    def get(self, request: Request) -> Response:
        """Those whose incidents were false positives in `[from, to)`, the most false time first, 200 at most."""
        with turn():
            return Response([shapes.NoisySerializer(one).data for one in noisy_tests(asked_for(request))])


def asked_for(request: Request) -> Scores:
    """Raises Refused."""
    now, asked = wiring.clock.now(), request.query_params
    scope: Scope = wanted_scope(asked).narrowed(test="")
    return scores_of(wanted_window(asked, now=now), now=now, scope=scope)
