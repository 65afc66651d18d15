"""What people decide about the gate, over REST: policies of consumers, and overrides."""

from __future__ import annotations

from typing import ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents.api.request_parsing import current_user, validated_body
from incidents.api.serializers import gate_decisions as serializers
from incidents.gate import copies, overrides
from incidents.gate import policies as gate_policies
from incidents.models import GateOverride, GatePolicy
from lakehub import wiring
from lakehub.accounts.permissions import field_of_body, require
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.request_permissions import require_on_named_dataset
from lakehub.catalog.request_times import parse_range
from lakehub.http.instants import parse_instant
from lakehub.kernel.errors import Refused


class Policies(ListAPIView[GatePolicy]):
    """What consumers' jobs do with a verdict."""

    scopes: ClassVar = {"GET": "gate:read", "PUT": "gate:write", "DELETE": "gate:write"}
    queryset = GatePolicy.objects.order_by("consumer", "tier")
    serializer_class = serializers.PolicySerializer

    @extend_schema(request=serializers.SetPolicySerializer, responses=serializers.PolicySerializer)
    def put(self, request: Request) -> Response:
        """Sets the policy of a consumer for a tier. Admins of the team that holds the consumer."""
        actor, now = current_user(request), wiring.clock.now()
        gate_policies.require_policy_right(actor, field_of_body(request, "consumer"), now=now)
        validated_data = validated_body(serializers.SetPolicySerializer, request)
        gate_policies.require_policy_right(actor, validated_data["consumer"], now=now)
        row = gate_policies.set_policy(**validated_data, actor=actor, now=now)
        return Response(serializers.PolicySerializer(row).data)

    @extend_schema(
        parameters=[
            OpenApiParameter("consumer", str, required=True),
            OpenApiParameter("tier", int, description="Left out: the one for every other tier."),
        ],
        request=None,
        responses={204: None},
    )
    def delete(self, request: Request) -> Response:
        """Takes a policy away: the one for every tier holds then, or the default."""
        consumer, actor, now = request.query_params.get("consumer", ""), current_user(request), wiring.clock.now()
        gate_policies.require_policy_right(actor, consumer, now=now)
        gate_policies.remove_policy(consumer, _tier(request), actor=actor, now=now)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _tier(request: Request) -> int | None:
    text = request.query_params.get("tier", "")
    if text and not (text.isascii() and text.isdecimal() and len(text) < 3):
        raise Refused.for_fields({"tier": f"`{text[:20]}` is no tier: 0 to 5."})
    return int(text) if text else None


class Overrides(ListAPIView[GateOverride]):
    """Ranges that people let be read in spite of the verdict."""

    scopes: ClassVar = {"GET": "gate:read", "POST": "gate:write"}
    serializer_class = serializers.OverrideSerializer
    queryset = GateOverride.objects.none()

    def get_queryset(self) -> QuerySet[GateOverride]:
        query_params = self.request.query_params
        return overrides.list_overrides(
            now=wiring.clock.now(), dataset=query_params.get("dataset", ""), ended=query_params.get("ended") == "1"
        )

    def get_serializer_context(self) -> dict[str, object]:
        return {**super().get_serializer_context(), "now": wiring.clock.now()}

    @extend_schema(
        parameters=[
            OpenApiParameter("dataset", str),
            OpenApiParameter("ended", str, enum=["0", "1"], description="1: those that have ended too."),
        ]
    )
    def get(self, request: Request) -> Response:
        """Those in force, newest first."""
        return super().get(request)

    @extend_schema(request=serializers.NewOverrideSerializer, responses={201: serializers.OverrideSerializer})
    def post(self, request: Request) -> Response:
        """Lets a range be read until a time, with a reason. Owners, on-call and admins of the dataset's team; audited."""
        require_on_named_dataset(request, "override")
        validated_data, actor, now = (
            validated_body(serializers.NewOverrideSerializer, request),
            current_user(request),
            wiring.clock.now(),
        )
        dataset = live_dataset(validated_data["dataset"])
        require(actor, "override", dataset.team)
        override = overrides.create_override(
            dataset,
            parse_range(validated_data["from"], validated_data["to"], dataset),
            copy=copies.find_copy(dataset.name, validated_data["dc"]) if validated_data["dc"] else None,
            consumer=validated_data["consumer"],
            reason=validated_data["reason"],
            expires_at=parse_instant(validated_data["until"], name="until", zone=dataset.zone),
            actor=actor,
            now=now,
        )
        shown = serializers.OverrideSerializer(override, context={"now": now})
        return Response(shown.data, status=status.HTTP_201_CREATED)


class EndOverride(APIView):
    """An override that ends before its time."""

    scopes: ClassVar = {"POST": "gate:write"}

    @extend_schema(request=None, responses=serializers.OverrideSerializer)
    def post(self, request: Request, number: int) -> Response:
        actor, now = current_user(request), wiring.clock.now()
        require(actor, "override", overrides.override_by_number(number).dataset.team)
        override = overrides.end_override(number, actor=actor, now=now)
        return Response(serializers.OverrideSerializer(override, context={"now": now}).data)
