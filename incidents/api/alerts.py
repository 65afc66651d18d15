"""How alerts are set up, over REST: the alerts of a dataset, what suppresses what there, the routes of a team."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents.alerts import coverage, generate, overview, suppression_rules
from incidents.api.request_parsing import current_user, validated_body
from incidents.api.serializers import alerts as serializers
from incidents.domain.alerting.suppression import DEFAULT_PAIRS, SuppressionPair
from incidents.notifications import routes
from incidents.notifications.send_conditions import suppression_pairs
from incidents.record.upstream import open_upstream_incidents
from lakehub import wiring
from lakehub.accounts.models import Team
from lakehub.accounts.permissions import require
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused
from quality.api.coverage_serializers import CoverageSerializer
from quality.domain.slas import TIERS
from quality.generation.coverage import REQUIRED_TIERS

SCOPES: dict[str, str] = {"GET": "incidents:read"} | dict.fromkeys(("POST", "PUT", "PATCH", "DELETE"), "catalog:write")


class Alerts(APIView):
    scopes = SCOPES

    @extend_schema(responses=serializers.AlertSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """The alerts of a dataset, one a category: how loud, who is told, held by what."""
        return Response(serializers.AlertSerializer(overview.alert_overviews_of(live_dataset(name)), many=True).data)


class AlertDetail(APIView):
    scopes = SCOPES

    @extend_schema(request=serializers.AlertOverrideSerializer, responses=serializers.AlertSerializer)
    def put(self, request: Request, name: str, category: str) -> Response:
        """Sets what counts in place of the template; it stays when the alerts are made anew."""
        dataset = _dataset_to_change(request, name)
        validated_data = validated_body(serializers.AlertOverrideSerializer, request)
        return self._override(request, dataset, category, validated_data)

    @extend_schema(request=None, responses=serializers.AlertSerializer)
    def delete(self, request: Request, name: str, category: str) -> Response:
        """The template counts again."""
        return self._override(request, _dataset_to_change(request, name), category, {})

    def _override(self, request: Request, dataset: Dataset, category: str, validated_data: dict[str, Any]) -> Response:
        actor = current_user(request).get_username()
        generate.override_alert(dataset, category, validated_data, actor=actor, now=wiring.clock.now())
        (changed,) = (
            alert_overview
            for alert_overview in overview.alert_overviews_of(dataset)
            if alert_overview.alert.category == category
        )
        return Response(serializers.AlertSerializer(changed).data)


class Suppression(APIView):
    scopes = SCOPES

    @extend_schema(responses=serializers.SuppressionSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Which category holds the messages of which other one."""
        return _pairs_response(suppression_pairs(live_dataset(name)))

    @extend_schema(request=serializers.PutSuppressionSerializer, responses=serializers.SuppressionSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Adds a pair, or takes one of the default away. A cycle is refused, and named."""
        dataset = _dataset_to_change(request, name)
        validated_data = validated_body(serializers.PutSuppressionSerializer, request)
        actor = current_user(request).get_username()
        return _pairs_response(
            suppression_rules.set_suppression(dataset, **validated_data, actor=actor, now=wiring.clock.now())
        )

    @extend_schema(request=None, responses=serializers.SuppressionSerializer)
    def delete(self, request: Request, name: str) -> Response:
        """The default counts again: freshness holds all others."""
        dataset = _dataset_to_change(request, name)
        return _pairs_response(
            suppression_rules.reset_suppression(
                dataset, actor=current_user(request).get_username(), now=wiring.clock.now()
            )
        )


class UpstreamIncidents(APIView):
    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(responses=serializers.UpstreamIncidentSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """Open incidents of what the dataset is made from, the nearest first."""
        return Response(
            serializers.UpstreamIncidentSerializer(open_upstream_incidents(live_dataset(name)), many=True).data
        )


class Routes(APIView):
    scopes = SCOPES

    @extend_schema(responses=serializers.RouteSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """Where the team hears of its incidents. None: at its e-mail address and webhook."""
        team = routes.team_named(name)
        return Response(serializers.RouteSerializer(team.routes.order_by("pk"), many=True).data)

    @extend_schema(request=serializers.PutRouteSerializer, responses={201: serializers.RouteSerializer})
    def post(self, request: Request, name: str) -> Response:
        """A new route. From the first one on, only routes are told."""
        team = _team_to_change(request, name)
        validated_data = validated_body(serializers.PutRouteSerializer, request)
        route = routes.set_route(
            team, validated_data, actor=current_user(request).get_username(), now=wiring.clock.now()
        )
        return Response(serializers.RouteSerializer(route).data, status.HTTP_201_CREATED)


class RouteDetail(APIView):
    scopes = SCOPES

    @extend_schema(responses=serializers.RouteSerializer)
    def get(self, request: Request, name: str, number: int) -> Response:
        return Response(serializers.RouteSerializer(routes.route_of(routes.team_named(name), number)).data)

    @extend_schema(request=serializers.ChangeRouteSerializer, responses=serializers.RouteSerializer)
    def patch(self, request: Request, name: str, number: int) -> Response:
        """Changes what is said of it."""
        team = _team_to_change(request, name)
        validated_data = validated_body(serializers.ChangeRouteSerializer, request)
        actor = current_user(request).get_username()
        route = routes.set_route(team, validated_data, actor=actor, now=wiring.clock.now(), number=number)
        return Response(serializers.RouteSerializer(route).data)

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, name: str, number: int) -> Response:
        """Takes it away. What it kept for later goes out at once."""
        team = _team_to_change(request, name)
        routes.remove_route(team, number, actor=current_user(request).get_username(), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class AlertCoverage(APIView):
    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(parameters=[OpenApiParameter("tier", int, many=True)], responses=CoverageSerializer)
    def get(self, request: Request) -> Response:
        """Of how many datasets somebody would hear whatever fails, and what the others lack."""
        tiers = [_tier(text) for text in request.query_params.getlist("tier")] or REQUIRED_TIERS
        return Response(CoverageSerializer(coverage.alert_coverage(tiers, now=wiring.clock.now())).data)


def _tier(text: str) -> int:
    tiers_by_text = {str(tier): tier for tier in TIERS}
    if text not in tiers_by_text:
        raise Refused.for_fields({"tier": f"There is no tier `{text}`: tiers go from 0 (highest) to {max(TIERS)}."})
    return tiers_by_text[text]


def _dataset_to_change(request: Request, name: str) -> Dataset:
    dataset = live_dataset(name)
    require(request.user, "onboard", dataset.team)
    return dataset


def _team_to_change(request: Request, name: str) -> Team:
    team = routes.team_named(name)
    require(request.user, "onboard", team)
    return team


def _pairs_response(pairs: frozenset[SuppressionPair]) -> Response:
    suppression = {"pairs": sorted(pairs), "is_default": pairs == DEFAULT_PAIRS}
    return Response(serializers.SuppressionSerializer(suppression).data)
