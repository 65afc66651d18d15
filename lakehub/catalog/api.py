"""The catalog over REST: data centers, connections, datasets, onboarding and off-boarding."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakehub import wiring
from lakehub.accounts.models import Team
from lakehub.accounts.permissions import field_of_body, require, require_in_named_team, require_in_some_team
from lakehub.catalog import connections, data_centers
from lakehub.catalog.datasets import changes, lookup, offboarding
from lakehub.catalog.models import Connection, DataCenter, Dataset, LineageDay
from lakehub.catalog.onboarding import bulk, onboard
from lakehub.catalog.onboarding.along_lineage import Direction, LineageSelection, requests_along_lineage
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.catalog.request_permissions import require_onboarding
from lakehub.catalog.serializers import (
    BulkOnboardingSerializer,
    ConnectionSerializer,
    DataCenterSerializer,
    DatasetChangeSerializer,
    DatasetSerializer,
    LineageDaySerializer,
    OnboardingLineSerializer,
    OnboardingRequestSerializer,
    parse_requests,
)
from lakehub.kernel.errors import Refused

SCOPES: dict[str, str] = {"GET": "catalog:read"} | dict.fromkeys(("POST", "PATCH", "DELETE"), "catalog:write")


class DataCenterList(ListAPIView[DataCenter]):
    scopes = SCOPES
    serializer_class = DataCenterSerializer
    queryset = DataCenter.objects.all()

    @extend_schema(request=DataCenterSerializer, responses={201: DataCenterSerializer})
    def post(self, request: Request) -> Response:
        """Adds a data center. Needs a superuser: it belongs to no team."""
        if not request.user.is_superuser or request.auth is not None:
            self.permission_denied(
                request, message="Only an administrator of Lakehub adds a data center, signed in and not with a token."
            )
        serializer = DataCenterSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data_center = data_centers.add_data_center(
            **serializer.validated_data, actor=request.user.get_username(), now=wiring.clock.now()
        )
        return Response(DataCenterSerializer(data_center).data, status.HTTP_201_CREATED)


class ConnectionList(ListAPIView[Connection]):
    scopes = SCOPES
    serializer_class = ConnectionSerializer
    queryset = Connection.objects.select_related("team")

    @extend_schema(request=ConnectionSerializer, responses={201: ConnectionSerializer})
    def post(self, request: Request) -> Response:
        """Adds a connection, after trying it. Needs an administrator of the team."""
        require_in_named_team(request.user, "connect", Team.objects.filter(name=field_of_body(request, "team")).first())
        serializer = ConnectionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        connection = connections.add_connection(
            name=values["name"],
            plugin=values["plugin"],
            url=values["url"],
            team=values["team"]["name"],
            actor=request.user.get_username(),
            now=wiring.clock.now(),
        )
        return Response(ConnectionSerializer(connection).data, status.HTTP_201_CREATED)


class DatasetList(ListAPIView[Dataset]):
    """Live datasets, by name."""

    scopes = SCOPES
    serializer_class = DatasetSerializer
    queryset = (
        Dataset.objects.filter(offboarded_at=None)
        .select_related("team")
        .prefetch_related("copies__data_center")
        .order_by("name")
    )

    @extend_schema(request=OnboardingRequestSerializer, responses={201: DatasetSerializer})
    def post(self, request: Request) -> Response:
        """Onboards a dataset; `?check=1` checks the application and writes nothing."""
        require_onboarding(
            request.user, team=field_of_body(request, "team"), connection=field_of_body(request, "connection")
        )
        serializer = OnboardingRequestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        if request.query_params.get("check") == "1":
            return Response(_key_evidence(onboard.check_request(serializer.to_request()).evidence))
        onboarded = onboard.onboard_dataset(
            serializer.to_request(), actor=request.user.get_username(), now=wiring.clock.now()
        )
        body = DatasetSerializer(onboarded.dataset).data | _key_evidence(onboarded.evidence)
        return Response(body, status.HTTP_201_CREATED)


class BulkOnboarding(APIView):
    scopes: ClassVar = {"POST": "catalog:write"}

    @extend_schema(request=BulkOnboardingSerializer, responses={200: OnboardingLineSerializer(many=True)})
    def post(self, request: Request) -> Response:
        """Onboards a list, or everything up or down the lineage of a dataset; a line for each says what became of it."""
        require_in_some_team(request.user, "onboard")
        serializer = BulkOnboardingSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        if bool(values["datasets"]) == bool(values["lineage_of"]):
            raise Refused("Give `datasets`, a list, or `lineage_of`, a name: one of the two.")
        done = (
            _lineage_selection(values)
            if values["lineage_of"]
            else LineageSelection(*parse_requests(values["datasets"]))
        )
        actor, now = request.user.get_username(), wiring.clock.now()

        def may(application: OnboardingRequest) -> None:
            require_onboarding(request.user, team=application.team, connection=application.connection)

        lines = bulk.onboard_many(done.requests, actor=actor, may=may, now=now)
        return Response([OnboardingLineSerializer(line).data for line in (*done.lines, *lines)])


class LineageDayList(ListAPIView[LineageDay]):
    """The daily looks at lineage and tables, newest first: what each added, pruned, found changed or gone."""

    scopes = SCOPES
    serializer_class = LineageDaySerializer
    queryset = LineageDay.objects.order_by("-day")


class DatasetDetail(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=DatasetSerializer)
    def get(self, request: Request, name: str) -> Response:
        return Response(DatasetSerializer(lookup.live_dataset(name)).data)

    @extend_schema(request=DatasetChangeSerializer, responses=DatasetSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Changes tier, keys or SLAs; the tests follow."""
        dataset = lookup.live_dataset(name)
        require(request.user, "onboard", dataset.team)
        serializer = DatasetChangeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        actor, now = request.user.get_username(), wiring.clock.now()
        changed = changes.update_dataset(dataset, dict(serializer.validated_data), actor=actor, now=now)
        return Response(DatasetSerializer(changed).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Off-boards the dataset. Its history and the lake's data stay; open incidents are resolved as off-boarded."""
        dataset = lookup.live_dataset(name)
        require(request.user, "offboard", dataset.team)
        offboarding.offboard_dataset(dataset, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class RestoreDataset(APIView):
    scopes: ClassVar = {"POST": "catalog:write"}

    @extend_schema(request=None, responses=DatasetSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Onboards again what was off-boarded: its history goes on, its tests are generated anew."""
        dataset = lookup.any_dataset(name)
        require(request.user, "onboard", dataset.team)
        offboarding.restore_dataset(dataset, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(DatasetSerializer(dataset).data)


def _lineage_selection(values: dict[str, Any]) -> LineageSelection:
    start = lookup.live_dataset(values["lineage_of"])
    direction = Direction(values["direction"])
    return requests_along_lineage(start, direction, tier=values["tier"], team=values["team"], grace=values["grace"])


def _key_evidence(evidence: Any) -> dict[str, Any]:
    if evidence is None:
        return {"key_evidence": None}
    return {"key_evidence": {"rows": evidence.rows, "distinct": evidence.distinct, "nulls": evidence.nulls}}
