"""Units and results over REST, and running tests now."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakehub import wiring
from lakehub.accounts.permissions import require
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Verdict
from lakehub.kernel.suggest import did_you_mean
from quality.api import SCOPES
from quality.api.serializers import (
    FailingRowsSerializer,
    RequestedUnitsSerializer,
    ResultSerializer,
    RunRequestSerializer,
    UnitSerializer,
)
from quality.execution.row_rights import RowRights
from quality.models import FailingRows, Result, Unit
from quality.planning import run_requests


class RunRequestList(APIView):
    scopes: ClassVar = {"POST": "quality:run"}

    @extend_schema(request=RunRequestSerializer, responses={202: RequestedUnitsSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Runs tests now, ahead of what is due. Names no test: all of them."""
        dataset = live_dataset(name)
        require(request.user, "rerun", dataset.team)
        serializer = RunRequestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        validated_data = serializer.validated_data
        over = _parse_range(validated_data["start"], validated_data["end"])
        units = run_requests.request_tests(
            dataset,
            tests=validated_data["tests"],
            data_center=validated_data["data_center"],
            over=over,
            actor=request.user.get_username(),
            now=wiring.clock.now(),
        )
        return Response({"units": units}, status.HTTP_202_ACCEPTED)


@extend_schema(
    parameters=[OpenApiParameter("verdict", str), OpenApiParameter("dc", str), OpenApiParameter("test", str)]
)
class UnitList(ListAPIView[Unit]):
    """What is believed of a dataset, test by test, copy by copy and partition by partition; newest range first."""

    scopes = SCOPES
    serializer_class = UnitSerializer

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "row_rights": RowRights(self.request.user)}

    def get_queryset(self) -> QuerySet[Unit]:
        query_params = self.request.query_params
        units = Unit.objects.filter(test__dataset=live_dataset(self.kwargs["name"]), test__retired_at=None)
        if verdict := query_params.get("verdict"):
            if verdict not in list(Verdict):
                raise Refused(f"There is no verdict `{verdict}`.{did_you_mean(verdict, list(Verdict))}")
            units = units.filter(verdict=verdict)
        if center := query_params.get("dc"):
            units = units.filter(copy__data_center__name=center)
        if key := query_params.get("test"):
            units = units.filter(test__key=key)
        return units.select_related("test__dataset", "copy__data_center").order_by("-start", "test__key", "pk")


class ResultList(ListAPIView[Result]):
    """The stored results of one unit, newest first."""

    scopes = SCOPES
    serializer_class = ResultSerializer

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "row_rights": RowRights(self.request.user)}

    def get_queryset(self) -> QuerySet[Result]:
        number = self.kwargs["number"]
        if not Unit.objects.filter(pk=number).exists():
            raise NotFound(f"There is no unit {number}.")
        return (
            Result.objects.filter(unit=number)
            .select_related("version", "unit__test__dataset")
            .order_by("-read_at", "-pk")
        )


class FailingRowsDetail(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=FailingRowsSerializer)
    def get(self, request: Request, number: int) -> Response:
        """Rows that break the test of a unit: up to 100 a measure, 64 KB in all, with their keys. For members of the owning team."""
        unit = Unit.objects.select_related("test__dataset__team").filter(pk=number).first()
        if unit is None:
            raise NotFound(f"There is no unit {number}.")
        require(request.user, "see rows", unit.test.dataset.team)
        rows = FailingRows.objects.select_related("unit__test", "unit__copy__data_center").filter(unit=number).first()
        if rows is None:
            raise NotFound(f"No rows that fail are kept of unit {number}: they are read when a column test fails.")
        return Response(FailingRowsSerializer(rows).data)


def _parse_range(start: Any, end: Any) -> Interval:
    try:
        return Interval(start, end)
    except ValueError as problem:
        raise Refused.for_fields({"end": str(problem)}) from problem
