"""The catalog over REST: data centers, connections, datasets, onboarding and off-boarding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, PolymorphicProxySerializer, extend_schema
from rest_framework import serializers, status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakehub import wiring
from lakehub.accounts.models import Team
from lakehub.accounts.permissions import field_of_body, require, require_in_named_team, require_in_some_team
from lakehub.catalog import connections, data_centers
from lakehub.catalog.connection_limits import limit_connection
from lakehub.catalog.datasets import lookup, offboarding
from lakehub.catalog.datasets.connection_change import change_connection, check_connection_change, find_connection
from lakehub.catalog.lineage import posted
from lakehub.catalog.lineage.posted import PostOutcome, PostResult
from lakehub.catalog.lineage.posted_events import parse_posted_event
from lakehub.catalog.metadata import KeyEvidence
from lakehub.catalog.models import Connection, DataCenter, Dataset, LineageDay
from lakehub.catalog.onboarding import bulk, onboard
from lakehub.catalog.onboarding.along_lineage import Direction, requests_along_lineage
from lakehub.catalog.onboarding.bulk import OnboardingSelection
from lakehub.catalog.onboarding.by_pattern import NotListed, PatternRequest, keep_chosen, requests_by_pattern
from lakehub.catalog.onboarding.column_proposals import ColumnProposal
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.catalog.onboarding.redefine import change_dataset, prepare_change
from lakehub.catalog.ports import preview_change
from lakehub.catalog.request_permissions import connections_of_body, require_change, require_onboarding
from lakehub.catalog.serializers.bulk import BulkOnboardingSerializer, OnboardingLineSerializer, parse_requests
from lakehub.catalog.serializers.changes import ConsequenceSerializer, ConsequencesSerializer, DatasetChangeSerializer
from lakehub.catalog.serializers.connections import (
    ConnectionLimitsSerializer,
    ConnectionSerializer,
    ConnectionTestResultSerializer,
    ConnectionTestSerializer,
    ConnectionUrlSerializer,
    DataCenterSerializer,
)
from lakehub.catalog.serializers.datasets import DatasetSerializer, LineageDaySerializer, PostedLineageSerializer
from lakehub.catalog.serializers.onboarding import OnboardingRequestSerializer
from lakehub.http.openapi import BUSY
from lakehub.kernel.errors import Refused

CHECK = OpenApiParameter(
    "check", str, enum=["1"], description="Only checks it and says what would come of it: nothing is changed."
)
SCOPES: dict[str, str] = {"GET": "catalog:read"} | dict.fromkeys(("POST", "PATCH", "DELETE"), "catalog:write")


def _changed_or_checked(name: str, changed: type[serializers.Serializer[Any]]) -> PolymorphicProxySerializer:
    """What is answered, with `check=1` and without."""
    return PolymorphicProxySerializer(
        f"{name}Answer", serializers=[changed, ConsequencesSerializer], resource_type_field_name=None
    )


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

    @extend_schema(request=ConnectionSerializer, responses={201: ConnectionSerializer, 503: BUSY})
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


class ConnectionCheck(APIView):
    scopes: ClassVar = {"POST": "catalog:write"}

    @extend_schema(request=ConnectionTestSerializer, responses={200: ConnectionTestResultSerializer, 503: BUSY})
    def post(self, request: Request) -> Response:
        """Tries a connection and keeps nothing: how many tables it lists. Needs an administrator of the team."""
        require_in_named_team(request.user, "connect", Team.objects.filter(name=field_of_body(request, "team")).first())
        serializer = ConnectionTestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        reached = connections.check_connection(
            **serializer.validated_data, actor=request.user.get_username(), now=wiring.clock.now()
        )
        return Response(
            {"tables": len(reached.tables), "sentence": reached.sentence, "role_warning": reached.role_warning}
        )


class ConnectionDetail(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=ConnectionSerializer)
    def get(self, request: Request, name: str) -> Response:
        return Response(ConnectionSerializer(find_connection(name)).data)

    @extend_schema(
        parameters=[CHECK],
        request=ConnectionUrlSerializer,
        responses={200: _changed_or_checked("ConnectionChange", ConnectionSerializer), 503: BUSY},
    )
    def patch(self, request: Request, name: str) -> Response:
        """Another URL, after trying it: a password that was rotated, a server that moved. `?check=1` only says what comes of it."""
        connection = find_connection(name)
        require(request.user, "connect", connection.team)
        serializer = ConnectionUrlSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        url, actor, now = serializer.validated_data["url"], request.user.get_username(), wiring.clock.now()
        if request.query_params.get("check") == "1":
            lines = check_connection_change(connection, url, actor=actor, now=now).consequences
            return Response({"consequences": [ConsequenceSerializer(line).data for line in lines]})
        change_connection(connection, url, actor=actor, now=now)
        return Response(ConnectionSerializer(connection).data)


class ConnectionLimits(APIView):
    scopes: ClassVar = {"PUT": "catalog:write"}

    @extend_schema(request=ConnectionLimitsSerializer, responses=ConnectionSerializer)
    def put(self, request: Request, name: str) -> Response:
        """How much of the source all jobs and looks may use together. Jobs that are at work follow a limit that changes; a first one holds from the next job on."""
        connection = find_connection(name)
        require(request.user, "connect", connection.team)
        serializer = ConnectionLimitsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        actor, now = request.user.get_username(), wiring.clock.now()
        limit_connection(connection, **serializer.validated_data, actor=actor, now=now)
        return Response(ConnectionSerializer(connection).data)


class DatasetList(ListAPIView[Dataset]):
    """Live datasets, by name."""

    scopes = SCOPES
    serializer_class = DatasetSerializer
    queryset = (
        Dataset.objects.filter(offboarded_at=None)
        .select_related("team", "feed__connection")
        .prefetch_related("copies__data_center", "copies__connection")
        .order_by("name")
    )

    @extend_schema(request=OnboardingRequestSerializer, responses={201: DatasetSerializer})
    def post(self, request: Request) -> Response:
        """Onboards a dataset; `?check=1` checks the application and writes nothing."""
        require_onboarding(request.user, team=field_of_body(request, "team"), connections=connections_of_body(request))
        serializer = OnboardingRequestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        if request.query_params.get("check") == "1":
            checked = onboard.check_request(serializer.to_request())
            return Response(_shown_by_rows(checked.evidence, checked.proposals))
        onboarded = onboard.onboard_dataset(
            serializer.to_request(), actor=request.user.get_username(), now=wiring.clock.now()
        )
        body = DatasetSerializer(onboarded.dataset).data | _shown_by_rows(onboarded.evidence, onboarded.proposals)
        return Response(body, status.HTTP_201_CREATED)


class BulkOnboarding(APIView):
    scopes: ClassVar = {"POST": "catalog:write"}

    @extend_schema(
        parameters=[CHECK],
        request=BulkOnboardingSerializer,
        responses={200: OnboardingLineSerializer(many=True)},
    )
    def post(self, request: Request) -> Response:
        """Onboards a list, everything up or down the lineage of a dataset, or the tables of a pattern; a line for each says what became of it.

        With `tables`, `?check=1` only says which could be onboarded (`ready`), which are, and why the others cannot be captured.
        """
        require_in_some_team(request.user, "onboard")
        serializer = BulkOnboardingSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        done = _bulk_selection(request, values)
        if request.query_params.get("check") == "1":
            if not values["tables"]:
                raise Refused("`check=1` is for `tables`, a pattern: datasets of a list are checked alone.")
            return Response([OnboardingLineSerializer(line).data for line in done.preview])
        actor, now = request.user.get_username(), wiring.clock.now()

        def may(application: OnboardingRequest) -> None:
            require_onboarding(request.user, team=application.team, connections=application.connections)

        lines = bulk.onboard_many(done.requests, actor=actor, may=may, now=now)
        return Response([OnboardingLineSerializer(line).data for line in (*done.lines, *lines)])


class PostedLineage(APIView):
    scopes: ClassVar = {"POST": "lineage:write"}

    @extend_schema(
        parameters=[OpenApiParameter("team", str, description="Whose lineage it is; a token says so by itself.")],
        request={"application/json": OpenApiTypes.OBJECT},
        responses={200: PostedLineageSerializer, 201: PostedLineageSerializer},
    )
    def post(self, request: Request) -> Response:
        """Takes one event of OpenLineage, as its clients post it: 201 where something of it is kept. It says what datasets of the team are made from."""
        team = getattr(request.user, "token_team", None)
        team = team or Team.objects.filter(name=request.query_params.get("team", "")).first()
        require_in_named_team(request.user, "onboard", team)
        if team is None:
            raise Refused.for_fields({"team": "Say whose lineage it is, with the address: `?team=flight-ops`."})
        now = wiring.clock.now()
        event = parse_posted_event(request.data, now=now)
        outcome = posted.take_event(event, team, now=now) if event else PostOutcome(PostResult.IGNORED)
        is_kept = outcome.result is not PostResult.IGNORED
        return Response(
            PostedLineageSerializer(outcome).data, status.HTTP_201_CREATED if is_kept else status.HTTP_200_OK
        )


class LineageDayList(ListAPIView[LineageDay]):
    """The daily looks at lineage and tables, newest first: what each added, pruned, found changed or gone."""

    scopes = SCOPES
    serializer_class = LineageDaySerializer
    queryset = LineageDay.objects.order_by("-day", "source")


class DatasetDetail(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=DatasetSerializer)
    def get(self, request: Request, name: str) -> Response:
        return Response(DatasetSerializer(lookup.live_dataset(name)).data)

    @extend_schema(
        parameters=[CHECK],
        request=DatasetChangeSerializer,
        responses=_changed_or_checked("DatasetChange", DatasetSerializer),
    )
    def patch(self, request: Request, name: str) -> Response:
        """Changes what is known of it; the tests follow. `?check=1` says what would come of it, and changes nothing."""
        dataset = lookup.live_dataset(name)
        require(request.user, "onboard", dataset.team)
        require_change(request, dataset)
        serializer = DatasetChangeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        actor, now, changes = request.user.get_username(), wiring.clock.now(), serializer.to_changes()
        if request.query_params.get("check") == "1":
            prepared = prepare_change(dataset, changes)
            lines = preview_change(dataset.pk, lambda: prepared.write(actor=actor, now=now), now=now)
            return Response({"consequences": [ConsequenceSerializer(line).data for line in lines]})
        return Response(DatasetSerializer(change_dataset(dataset, changes, actor=actor, now=now)).data)

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


def _bulk_selection(request: Request, values: dict[str, Any]) -> OnboardingSelection:
    """Raises Refused, PermissionDenied."""
    if [bool(values[name]) for name in ("datasets", "lineage_of", "tables")].count(True) != 1:
        raise Refused("Give `datasets`, a list, `lineage_of`, a name, or `tables`, a pattern: one of the three.")
    if values["chosen"] is not None and not values["tables"]:
        raise Refused.for_fields({"chosen": "Give `tables`, the pattern that these tables match."})
    if values["tables"]:
        return _pattern_selection(request, values)
    if values["lineage_of"]:
        return _lineage_selection(values)
    return OnboardingSelection(*parse_requests(values["datasets"]))


def _pattern_selection(request: Request, values: dict[str, Any]) -> OnboardingSelection:
    """The names of the tables are told to those only who may read them."""
    require_onboarding(request.user, team=values["team"], connections=[values["connection"]])
    selection = requests_by_pattern(PatternRequest(**{each.name: values[each.name] for each in fields(PatternRequest)}))
    try:
        return selection if values["chosen"] is None else keep_chosen(selection, values["chosen"])
    except NotListed as problem:
        raise serializers.ValidationError({name: [why] for name, why in problem.fields.items()}) from problem


def _lineage_selection(values: dict[str, Any]) -> OnboardingSelection:
    start = lookup.live_dataset(values["lineage_of"])
    direction = Direction(values["direction"])
    return requests_along_lineage(start, direction, tier=values["tier"], team=values["team"], grace=values["grace"])


def _shown_by_rows(evidence: KeyEvidence | None, proposals: Sequence[ColumnProposal]) -> dict[str, Any]:
    """What the real rows showed: of the key, and of what the application left out."""
    return {
        "key_evidence": None if evidence is None else asdict(evidence) | {"sentence": evidence.sentence},
        "proposals": [asdict(proposed) | {"sentence": proposed.sentence} for proposed in proposals],
    }
