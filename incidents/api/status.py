"""The states of datasets over REST: what the list of datasets and the first page show."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents.api.request_parsing import checked_choice
from incidents.api.serializers.status import STATES, StatusSerializer
from incidents.domain.incident.health import STATE_WEIGHTS
from incidents.record.health import DatasetHealth, health_of
from incidents.scores.scope import parse_scope
from lakehub import wiring
from lakehub.catalog.models import Dataset
from lakehub.http.pagination import BoundedPagination


class Status(APIView):
    """States of datasets by category."""

    scopes: ClassVar = {"GET": "incidents:read"}
    pagination_class: ClassVar = BoundedPagination

    @extend_schema(
        parameters=[
            OpenApiParameter("dataset", str),
            OpenApiParameter("team", str),
            OpenApiParameter("tier", int),
            OpenApiParameter("state", str, enum=STATES),
        ],
        responses=StatusSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """Worst first. What is suppressed, snoozed or in grace has that as its state, never pass. Three queries for all."""
        query_params = request.query_params
        scope = parse_scope({name: query_params.get(name, "") for name in ("dataset", "team", "tier")})
        state = checked_choice("state", query_params["state"], STATES) if query_params.get("state") else ""
        datasets = Dataset.objects.filter(scope.of_datasets()).select_related("team")
        matching = [
            health for health in health_of(datasets, now=wiring.clock.now()).values() if state in ("", health.state)
        ]
        pages = self.pagination_class()
        page: list[DatasetHealth] = list(pages.paginate_queryset(sorted(matching, key=_worst_first), request) or ())
        return pages.get_paginated_response([StatusSerializer(health).data for health in page])


def _worst_first(health: DatasetHealth) -> tuple[int, int, str]:
    return -STATE_WEIGHTS[health.state], health.dataset.tier, health.dataset.name
