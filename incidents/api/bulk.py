"""One action on many incidents over REST, and taking it back."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents import bulk
from incidents.api.common import person, valid
from incidents.shapes.bulk import BulkReportSerializer, TogetherSerializer
from incidents.undo import undo
from lakehub import wiring


class Together(APIView):
    scopes: ClassVar = {"POST": "incidents:write"}

    @extend_schema(request=TogetherSerializer, responses=BulkReportSerializer)
    def post(self, request: Request) -> Response:
        """Does what can be done; the rest stays as it was and is named with the reason."""
        said = valid(TogetherSerializer, request)
        numbers = said.pop("incidents")
        report = bulk.together(numbers, bulk.Ask(**said), actor=person(request), now=wiring.clock.now())
        return Response(BulkReportSerializer(report).data)


class Undo(APIView):
    scopes: ClassVar = {"POST": "incidents:write"}

    @extend_schema(request=None, responses=BulkReportSerializer)
    def post(self, request: Request, number: int) -> Response:
        """Sets each incident back to what it was, unless it has changed since. For 10 minutes, once, by whoever did it."""
        return Response(BulkReportSerializer(undo(number, actor=person(request), now=wiring.clock.now())).data)
