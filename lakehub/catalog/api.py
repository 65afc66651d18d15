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
from lakehub.accounts.permissions import named, require, require_named, require_somewhere
from lakehub.catalog import bulk, changes, onboarding, places
from lakehub.catalog.access import require_onboarding
from lakehub.catalog.along import Along, Direction, along
from lakehub.catalog.models import Connection, DataCenter, Dataset, LineageDay
from lakehub.catalog.onboarding import Application
from lakehub.catalog.serializers import (
    ApplicationSerializer,
    BulkSerializer,
    ChangeSerializer,
    ConnectionSerializer,
    DataCenterSerializer,
    DatasetSerializer,
    LineageDaySerializer,
    LineSerializer,
    read_list,
)
from lakehub.kernel.errors import Refused

SCOPES: dict[str, str] = {"GET": "catalog:read"} | dict.fromkeys(("POST", "PATCH", "DELETE"), "catalog:write")


class DataCenters(ListAPIView[DataCenter]):
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
        asked = DataCenterSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        made = places.add_data_center(**asked.validated_data, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(DataCenterSerializer(made).data, status.HTTP_201_CREATED)


class Connections(ListAPIView[Connection]):
    scopes = SCOPES
    serializer_class = ConnectionSerializer
    queryset = Connection.objects.select_related("team")

    @extend_schema(request=ConnectionSerializer, responses={201: ConnectionSerializer})
    def post(self, request: Request) -> Response:
        """Adds a connection, after trying it. Needs an administrator of the team."""
        require_named(request.user, "connect", Team.objects.filter(name=named(request, "team")).first())
        asked = ConnectionSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        values = asked.validated_data
        made = places.connect(
            name=values["name"],
            plugin=values["plugin"],
            url=values["url"],
            team=values["team"]["name"],
            actor=request.user.get_username(),
            now=wiring.clock.now(),
        )
        return Response(ConnectionSerializer(made).data, status.HTTP_201_CREATED)


class Datasets(ListAPIView[Dataset]):
    """Live datasets, by name."""

    scopes = SCOPES
    serializer_class = DatasetSerializer
    queryset = (
        Dataset.objects.filter(offboarded_at=None)
        .select_related("team")
        .prefetch_related("copies__data_center")
        .order_by("name")
    )

    @extend_schema(request=ApplicationSerializer, responses={201: DatasetSerializer})
    def post(self, request: Request) -> Response:
        """Onboards a dataset; `?check=1` checks the application and writes nothing."""
        require_onboarding(request.user, team=named(request, "team"), connection=named(request, "connection"))
        asked = ApplicationSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        if request.query_params.get("check") == "1":
            return Response(_evidence(onboarding.check(asked.application()).evidence))
        made = onboarding.onboard(asked.application(), actor=request.user.get_username(), now=wiring.clock.now())
        body = DatasetSerializer(made.dataset).data | _evidence(made.evidence)
        return Response(body, status.HTTP_201_CREATED)


class Bulk(APIView):
    scopes: ClassVar = {"POST": "catalog:write"}

    @extend_schema(request=BulkSerializer, responses={200: LineSerializer(many=True)})
    def post(self, request: Request) -> Response:
        """Onboards a list, or everything up or down the lineage of a dataset; a line for each says what became of it."""
        require_somewhere(request.user, "onboard")
        asked = BulkSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said = asked.validated_data
        if bool(said["datasets"]) == bool(said["lineage_of"]):
            raise Refused("Give `datasets`, a list, or `lineage_of`, a name: one of the two.")
        done = _along(said) if said["lineage_of"] else Along(*read_list(said["datasets"]))
        actor, now = request.user.get_username(), wiring.clock.now()

        def may(application: Application) -> None:
            require_onboarding(request.user, team=application.team, connection=application.connection)

        lines = bulk.onboard_many(done.applications, actor=actor, may=may, now=now)
        return Response([LineSerializer(line).data for line in (*done.lines, *lines)])


class LineageDays(ListAPIView[LineageDay]):
    """The daily looks at lineage and tables, newest first: what each added, pruned, found changed or gone."""

    scopes = SCOPES
    serializer_class = LineageDaySerializer
    queryset = LineageDay.objects.order_by("-day")


class OneDataset(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=DatasetSerializer)
    def get(self, request: Request, name: str) -> Response:
        return Response(DatasetSerializer(changes.live_dataset(name)).data)

    @extend_schema(request=ChangeSerializer, responses=DatasetSerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Changes tier, keys or SLAs; the tests follow."""
        dataset = changes.live_dataset(name)
        require(request.user, "onboard", dataset.team)
        asked = ChangeSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        actor, now = request.user.get_username(), wiring.clock.now()
        changed = changes.change(dataset, dict(asked.validated_data), actor=actor, now=now)
        return Response(DatasetSerializer(changed).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Off-boards the dataset. Its history and the lake's data stay; open incidents are resolved as off-boarded."""
        dataset = changes.live_dataset(name)
        require(request.user, "offboard", dataset.team)
        changes.offboard(dataset, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class Restore(APIView):
    scopes: ClassVar = {"POST": "catalog:write"}

    @extend_schema(request=None, responses=DatasetSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Onboards again what was off-boarded: its history goes on, its tests are generated anew."""
        dataset = changes.any_dataset(name)
        require(request.user, "onboard", dataset.team)
        changes.restore(dataset, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(DatasetSerializer(dataset).data)


def _along(said: dict[str, Any]) -> Along:
    start = changes.live_dataset(said["lineage_of"])
    direction = Direction(said["direction"])
    return along(start, direction, tier=said["tier"], team=said["team"], grace=said["grace"])


def _evidence(evidence: Any) -> dict[str, Any]:
    if evidence is None:
        return {"key_evidence": None}
    return {"key_evidence": {"rows": evidence.rows, "distinct": evidence.distinct, "nulls": evidence.nulls}}
