"""Scores over REST."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents import scoring
from incidents.shapes import scores as shapes
from lakehub import wiring
from lakehub.catalog.changes import live_dataset
from lakehub.catalog.instants import wanted_range


class ScoresOfWindow(APIView):
    """How good alarms and data were."""

    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(
        parameters=[
            OpenApiParameter("from", str, required=True),
            OpenApiParameter("to", str),
            OpenApiParameter("dataset", str),
        ],
        responses=shapes.ScoresSerializer,
    )
    def get(self, request: Request) -> Response:
        """Precision, recall, data-level and query-level scores of `[from, to)`, of one dataset or of all. `to`: now."""
        now, asked = wiring.clock.now(), request.query_params
        dataset = live_dataset(asked["dataset"]) if asked.get("dataset") else None
        window = wanted_range(asked.get("from", ""), asked.get("to") or now.isoformat(), dataset)
        found = scoring.scores_of(window, now=now, datasets=[dataset.pk] if dataset else None)
        return Response(shapes.ScoresSerializer(found).data)
