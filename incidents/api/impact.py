"""What an incident may reach, over REST."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents import impact, moves
from incidents.models import Span
from incidents.shapes.following import ImpactSerializer
from lakehub import wiring


class Impact(APIView):
    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(responses=ImpactSerializer)
    def get(self, request: Request, number: int) -> Response:
        """Datasets made from this one where it fails, three steps far, and consumers whom the gate told of its data."""
        incident = moves.find(number)
        spans = list(Span.objects.filter(incident=incident).select_related("copy"))
        found = {
            "downstream": impact.downstream(incident, spans),
            "consumers": impact.consumers(incident, spans, now=wiring.clock.now()),
        }
        return Response(ImpactSerializer(found).data)
