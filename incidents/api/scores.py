"""Scores over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents.api.serializers import scores as serializers
from incidents.api.serializers.ranges import RangeSerializer
from incidents.scores.noisy_tests import noisy_tests
from incidents.scores.response_times import response_times_of
from incidents.scores.scope import DEFAULT_DAYS, MAX_DAYS, Scope, parse_scope, parse_window
from incidents.scores.scoring import GROUPINGS, Score, Scores, scores_of, with_test_names
from incidents.scores.single_flight import exclusive_computation
from lakehub import wiring
from lakehub.http.openapi import ErrorSerializer
from lakehub.http.pagination import BoundedPagination
from quality.models import Category

WINDOW = [
    OpenApiParameter("from", str, description="A date of UTC, or a time with its offset."),
    OpenApiParameter("to", str, description="Not included; now, if not given."),
    OpenApiParameter(
        "days", int, description=f"Instead of `from`: so many days, {MAX_DAYS} at most; else {DEFAULT_DAYS}."
    ),
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


class WindowScores(APIView):
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
        responses={200: serializers.ScoresSerializer, 503: BUSY},
    )
    def get(self, request: Request) -> Response:
        """Precision, recall, data-level and query-level scores of `[from, to)`, and how long it took to react."""
        with exclusive_computation():
            return Response(self._said(request))

    def _said(self, request: Request) -> dict[str, Any]:
        scores = requested_scores(request)
        by = request.query_params.get("by", "")
        groups = scores.by(by) if by else []
        shown = BoundedPagination().paginate_queryset(groups, request) if groups else []
        page: list[Score] = list(shown or ())
        whole = scores.whole
        return {
            **serializers.ScoreSerializer(whole).data,
            "window": RangeSerializer(scores.window).data,
            "unsettled": whole.unsettled[: serializers.MAX_NAMED],
            "times": serializers.ReactionsSerializer(response_times_of(scores.window, scores.scope)).data,
            "by": by,
            "groups_count": len(groups),
            "groups": [
                serializers.GroupSerializer(group).data for group in (with_test_names(page) if by == "test" else page)
            ],
        }


class NoisyTests(APIView):
    """Tests to retire or to tune."""

    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(parameters=[*WINDOW, *SCOPE], responses={200: serializers.NoisySerializer(many=True), 503: BUSY})
    def get(self, request: Request) -> Response:
        """Those whose incidents were false positives in `[from, to)`, the most false time first, 200 at most."""
        with exclusive_computation():
            return Response(
                [serializers.NoisySerializer(noisy_test).data for noisy_test in noisy_tests(requested_scores(request))]
            )


def requested_scores(request: Request) -> Scores:
    """Raises Refused."""
    now, query_params = wiring.clock.now(), request.query_params
    scope: Scope = parse_scope(query_params).narrowed(test="")
    return scores_of(parse_window(query_params, now=now), now=now, scope=scope)
