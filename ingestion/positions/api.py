"""Positions over REST, below /api/v1/datasets/NAME/positions."""

from __future__ import annotations

from typing import ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ingestion.models import CaptureHour
from ingestion.positions.listing import positions_of
from ingestion.positions.requests import WantedPlace, request_position
from ingestion.positions.serializers import CaptureHourSerializer, PositionsSerializer, SetPositionSerializer
from ingestion.runs import job_runs
from ingestion.serializers import JobRunSerializer
from lakehub import wiring
from lakehub.accounts.permissions import require
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.http.openapi import BUSY


class CaptureHourList(ListAPIView[CaptureHour]):
    """By copy and hour, newest first: how long changes took to the lake, and whether its commits have read all that the log has."""

    scopes: ClassVar = {"GET": "ingestion:read"}
    serializer_class = CaptureHourSerializer

    def get_queryset(self) -> QuerySet[CaptureHour]:
        hours = CaptureHour.objects.filter(copy__dataset=live_dataset(self.kwargs["name"]), copy__removed_at=None)
        return hours.select_related("copy__data_center").order_by("-start", "-pk")


class PositionList(APIView):
    scopes: ClassVar = {"GET": "ingestion:read", "POST": "ingestion:run"}

    @extend_schema(operation_id="datasets_positions", responses={200: PositionsSerializer, 503: BUSY})
    def get(self, request: Request, name: str) -> Response:
        """Where the copies of a captured dataset stand in the changelog, and its tap in the binlog."""
        return Response(PositionsSerializer(positions_of(live_dataset(name))).data)

    @extend_schema(request=SetPositionSerializer, responses={201: JobRunSerializer, 503: BUSY})
    def post(self, request: Request, name: str) -> Response:
        """Sets where a copy reads its changelog on. Needs an owner or an administrator of the team, and a reason.

        A run of the kind `set_position`. Going back reads messages again, which changes nothing that stands. Going forward leaves
        changes out: it needs `may_skip`, and the copy is incomplete until it is loaded again.
        """
        dataset = live_dataset(name)
        require(request.user, "onboard", dataset.team)
        serializer = SetPositionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        requested = request_position(
            job_runs.find_copy(dataset, values["data_center"]),
            WantedPlace(values["offsets"], values["time"], values["earliest"]),
            why=values["why"],
            may_skip=values["may_skip"],
            actor=request.user.get_username(),
            now=wiring.clock.now(),
        )
        return Response(JobRunSerializer(requested.run, context={"request": request}).data, status.HTTP_201_CREATED)
