"""What people decide about the gate, over REST: policies of consumers, and overrides."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents.api.common import person, valid
from incidents.gate import answers as gate
from incidents.gate import overrides
from incidents.gate import policies as gate_policies
from incidents.models import GateOverride, GatePolicy
from incidents.shapes import gate_decisions as shapes
from lakehub import wiring
from lakehub.accounts.permissions import named, require
from lakehub.catalog.access import require_on_dataset
from lakehub.catalog.changes import live_dataset
from lakehub.catalog.instants import instant, wanted_range
from lakehub.kernel.errors import Refused


class Policies(ListAPIView[GatePolicy]):
    """What consumers' jobs do with a verdict."""

    scopes: ClassVar = {"GET": "gate:read", "PUT": "gate:write", "DELETE": "gate:write"}
    queryset = GatePolicy.objects.order_by("consumer", "tier")
    serializer_class = shapes.PolicySerializer

    @extend_schema(request=shapes.SetPolicySerializer, responses=shapes.PolicySerializer)
    def put(self, request: Request) -> Response:
        """Sets the policy of a consumer for a tier. Admins of the team that holds the consumer."""
        actor, now = person(request), wiring.clock.now()
        gate_policies.require_policy(actor, named(request, "consumer"), now=now)
        said = valid(shapes.SetPolicySerializer, request)
        gate_policies.require_policy(actor, said["consumer"], now=now)
        row = gate_policies.put(**said, actor=actor, now=now)
        return Response(shapes.PolicySerializer(row).data)

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
        consumer, actor, now = request.query_params.get("consumer", ""), person(request), wiring.clock.now()
        gate_policies.require_policy(actor, consumer, now=now)
        gate_policies.remove(consumer, _tier(request), actor=actor, now=now)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _tier(request: Request) -> int | None:
    said = request.query_params.get("tier", "")
    if said and not (said.isascii() and said.isdecimal() and len(said) < 3):
        raise Refused.because({"tier": f"`{said[:20]}` is no tier: 0 to 5."})
    return int(said) if said else None


class Overrides(ListAPIView[GateOverride]):
    """Ranges that people let be read in spite of the verdict."""

    scopes: ClassVar = {"GET": "gate:read", "POST": "gate:write"}
    serializer_class = shapes.OverrideSerializer
    queryset = GateOverride.objects.none()

    def get_queryset(self):  # type: ignore[no-untyped-def]  # the stub's return type names a private class
        asked = self.request.query_params
        return overrides.listed(
            now=wiring.clock.now(), dataset=asked.get("dataset", ""), ended=asked.get("ended") == "1"
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

    @extend_schema(request=shapes.NewOverrideSerializer, responses={201: shapes.OverrideSerializer})
    def post(self, request: Request) -> Response:
        """Lets a range be read until a time, with a reason. Owners, on-call and admins of the dataset's team; audited."""
        require_on_dataset(request, "override")
        said, actor, now = valid(shapes.NewOverrideSerializer, request), person(request), wiring.clock.now()
        dataset = live_dataset(said["dataset"])
        require(actor, "override", dataset.team)
        made = overrides.override(
            dataset,
            wanted_range(said["from"], said["to"], dataset),
            copy=gate.find_copy(dataset.name, said["dc"]) if said["dc"] else None,
            consumer=said["consumer"],
            reason=said["reason"],
            expires_at=instant(said["until"], name="until", zone=dataset.zone),
            actor=actor,
            now=now,
        )
        shown = shapes.OverrideSerializer(made, context={"now": now})
        return Response(shown.data, status=status.HTTP_201_CREATED)


class EndOverride(APIView):
    """An override that ends before its time."""

    scopes: ClassVar = {"POST": "gate:write"}

    @extend_schema(request=None, responses=shapes.OverrideSerializer)
    def post(self, request: Request, number: int) -> Response:
        actor, now = person(request), wiring.clock.now()
        require(actor, "override", overrides.find(number).dataset.team)
        made = overrides.end(number, actor=actor, now=now)
        return Response(shapes.OverrideSerializer(made, context={"now": now}).data)
