"""One action on many incidents over REST, and taking it back."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents.api.request_parsing import current_user, validated_body
from incidents.api.serializers.bulk import BulkReportSerializer, TogetherSerializer
from incidents.lifecycle.bulk import apply
from incidents.lifecycle.bulk.undo import undo_bulk_action
from lakehub import wiring


class BulkActions(APIView):
    scopes: ClassVar = {"POST": "incidents:write"}

    @extend_schema(request=TogetherSerializer, responses=BulkReportSerializer)
    def post(self, request: Request) -> Response:
        """Does what can be done; the rest stays as it was and is named with the reason."""
        validated_data = validated_body(TogetherSerializer, request)
        numbers = validated_data.pop("incidents")
        report = apply.apply_to_many(
            numbers, apply.BulkRequest(**validated_data), actor=current_user(request), now=wiring.clock.now()
        )
        return Response(BulkReportSerializer(report).data)


class UndoBulkAction(APIView):
    scopes: ClassVar = {"POST": "incidents:write"}

    @extend_schema(request=None, responses=BulkReportSerializer)
    def post(self, request: Request, number: int) -> Response:
        """Sets each incident back to what it was, unless it has changed since. For 10 minutes, once, by whoever did it."""
        return Response(
            BulkReportSerializer(undo_bulk_action(number, actor=current_user(request), now=wiring.clock.now())).data
        )
