"""The states of datasets over REST: what the list of datasets and the first page show."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents.api.common import known
from incidents.domain.rollup import WEIGHTS
from incidents.rollup import Health, health_of
from incidents.scores.scope import wanted_scope
from incidents.shapes.status import STATES, StatusSerializer
from lakehub import wiring
from lakehub.catalog.models import Dataset
from lakehub.paging import Pages


class Status(APIView):
    """States of datasets by category."""

    scopes: ClassVar = {"GET": "incidents:read"}
    pagination_class: ClassVar = Pages

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
        asked = request.query_params
        scope = wanted_scope({name: asked.get(name, "") for name in ("dataset", "team", "tier")})
        state = known("state", asked["state"], STATES) if asked.get("state") else ""
        datasets = Dataset.objects.filter(scope.of_datasets()).select_related("team")
        found = [one for one in health_of(datasets, now=wiring.clock.now()).values() if state in ("", one.state)]
        pages = self.pagination_class()
        page: list[Health] = list(pages.paginate_queryset(sorted(found, key=_worst_first), request) or ())
        return pages.get_paginated_response([StatusSerializer(one).data for one in page])


def _worst_first(one: Health) -> tuple[int, int, str]:
    return -WEIGHTS[one.state], one.dataset.tier, one.dataset.name
