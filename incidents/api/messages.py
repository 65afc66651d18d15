"""Messages over REST: the words of a team, trials of an address, how deliveries went."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents.api.request_parsing import checked_choice, current_user, validated_body
from incidents.api.serializers import messages as serializers
from incidents.channels import CHANNELS
from incidents.domain.alerting.message_template import VARIABLES
from incidents.models import Delivery
from incidents.notifications import routes, sender, templates
from lakehub import wiring
from lakehub.accounts.models import Team
from lakehub.accounts.permissions import require
from lakehub.http.openapi import BUSY
from lakehub.kernel.errors import Refused

SCOPES: dict[str, str] = {"GET": "incidents:read"} | dict.fromkeys(("POST", "PUT", "DELETE"), "catalog:write")


class MessageTemplates(APIView):
    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(responses=serializers.WordsSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """What the team's messages say, one an occasion."""
        return Response(serializers.WordsSerializer(templates.templates_of(routes.team_named(name)), many=True).data)


class MessageTemplateDetail(APIView):
    scopes = SCOPES

    @extend_schema(responses=serializers.WordsSerializer)
    def get(self, request: Request, name: str, occasion: str) -> Response:
        return Response(serializers.WordsSerializer(templates.template_of(routes.team_named(name), occasion)).data)

    @extend_schema(request=serializers.PutWordsSerializer, responses=serializers.WordsSerializer)
    def put(self, request: Request, name: str, occasion: str) -> Response:
        """Sets the words. A name in braces that is no variable is refused."""
        team, validated_data = _team_to_change(request, name), validated_body(serializers.PutWordsSerializer, request)
        template_text = templates.set_template(
            team, occasion, **validated_data, actor=current_user(request).get_username(), now=wiring.clock.now()
        )
        return Response(serializers.WordsSerializer(template_text).data)

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, name: str, occasion: str) -> Response:
        """The words for `others` count again, or Lakehub's own."""
        team = _team_to_change(request, name)
        templates.reset_template(team, occasion, actor=current_user(request).get_username(), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class MessageTemplatePreview(APIView):
    scopes: ClassVar = {"POST": "incidents:read"}

    @extend_schema(request=serializers.PutWordsSerializer, responses=serializers.PreviewSerializer)
    def post(self, request: Request, name: str, occasion: str) -> Response:
        """How these words would read of the team's latest incident. Nothing is changed or sent."""
        team, validated_data = routes.team_named(name), validated_body(serializers.PutWordsSerializer, request)
        preview = templates.preview_template(team, occasion, **validated_data, now=wiring.clock.now())
        return Response(serializers.PreviewSerializer(preview).data)


class MessageVariables(APIView):
    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(responses=serializers.VariableSerializer(many=True))
    def get(self, request: Request) -> Response:
        """What may stand in braces in the words of a message."""
        rows = [{"name": name, "what": description} for name, description in VARIABLES.items()]
        return Response(serializers.VariableSerializer(rows, many=True).data)


class ChannelTest(APIView):
    scopes: ClassVar = {"POST": "catalog:write"}

    @extend_schema(request=serializers.TrialSerializer, responses={200: serializers.DeliverySerializer, 503: BUSY})
    def post(self, request: Request, name: str) -> Response:
        """Sends a word to an address and says whether it arrived."""
        team, validated_data = _team_to_change(request, name), validated_body(serializers.TrialSerializer, request)
        checked_choice("channel", validated_data["channel"], list(CHANNELS))
        return _send_test(request, team, validated_data["channel"], validated_data["address"])


class RouteTest(APIView):
    scopes: ClassVar = {"POST": "catalog:write"}

    @extend_schema(request=None, responses={200: serializers.DeliverySerializer, 503: BUSY})
    def post(self, request: Request, name: str, number: int) -> Response:
        """Sends a word over a route and says whether it arrived."""
        team = _team_to_change(request, name)
        route = routes.route_of(team, number)
        return _send_test(request, team, route.channel, route.address)


class Deliveries(ListAPIView[Delivery]):
    """How messages went, newest first; `incident` and `ok` (0 or 1) narrow the list."""

    scopes: ClassVar = {"GET": "incidents:read"}
    serializer_class = serializers.DeliverySerializer
    queryset = Delivery.objects.none()

    def get_queryset(self) -> QuerySet[Delivery]:
        query_params = self.request.query_params
        rows = Delivery.objects.filter(team=routes.team_named(self.kwargs["name"])).select_related("message")
        if text := query_params.get("incident"):
            if not text.isascii() or not text.isdigit() or len(text) > 18:
                raise Refused.for_fields({"incident": f"`{text}` is no number of an incident."})
            rows = rows.filter(message__incident=int(text))
        if text := query_params.get("ok"):
            rows = rows.filter(ok=checked_choice("ok", text, ["0", "1"]) == "1")
        return rows.order_by("-at", "-pk")

    @extend_schema(
        parameters=[OpenApiParameter("incident", int), OpenApiParameter("ok", str, enum=["0", "1"])],
        responses=serializers.DeliverySerializer(many=True),
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


def _send_test(request: Request, team: Team, channel: str, address: str) -> Response:
    actor, now = current_user(request).get_username(), wiring.clock.now()
    return Response(
        serializers.DeliverySerializer(sender.send_test_message(channel, address, team=team, actor=actor, now=now)).data
    )


def _team_to_change(request: Request, name: str) -> Team:
    team = routes.team_named(name)
    require(request.user, "onboard", team)
    return team
