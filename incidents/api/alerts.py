"""How alerts are set up, over REST: the alerts of a dataset, what suppresses what there, the routes of a team."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents import alert_coverage, alerting, alerts, suppressions
from incidents.api.common import person, valid
from incidents.domain.precedence import DEFAULT, Pair
from incidents.messages import routes
from incidents.messages.holding import pairs_of
from incidents.shapes import alerts as shapes
from incidents.upstream import open_upstream
from lakehub import wiring
from lakehub.accounts.models import Team
from lakehub.accounts.permissions import require
from lakehub.catalog.changes import live_dataset
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused
from quality.coverage import HIGHEST
from quality.domain.tiers import TIERS
from quality.serializers import CoverageSerializer

SCOPES: dict[str, str] = {"GET": "incidents:read"} | dict.fromkeys(("POST", "PUT", "PATCH", "DELETE"), "catalog:write")


class Alerts(APIView):
    scopes = SCOPES

    @extend_schema(responses=shapes.AlertSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """The alerts of a dataset, one a category: how loud, who is told, held by what."""
        return Response(shapes.AlertSerializer(alerting.of_dataset(live_dataset(name)), many=True).data)


class OneAlert(APIView):
    scopes = SCOPES

    @extend_schema(request=shapes.AlertOverrideSerializer, responses=shapes.AlertSerializer)
    def put(self, request: Request, name: str, category: str) -> Response:
        """Sets what counts in place of the template; it stays when the alerts are made anew."""
        dataset = _dataset_to_change(request, name)
        said = valid(shapes.AlertOverrideSerializer, request)
        return self._override(request, dataset, category, said)

    @extend_schema(request=None, responses=shapes.AlertSerializer)
    def delete(self, request: Request, name: str, category: str) -> Response:
        """The template counts again."""
        return self._override(request, _dataset_to_change(request, name), category, {})

    def _override(self, request: Request, dataset: Dataset, category: str, said: dict[str, Any]) -> Response:
        actor = person(request).get_username()
        alerts.override(dataset, category, said, actor=actor, now=wiring.clock.now())
        (found,) = (one for one in alerting.of_dataset(dataset) if one.alert.category == category)
        return Response(shapes.AlertSerializer(found).data)


class Suppression(APIView):
    scopes = SCOPES

    @extend_schema(responses=shapes.SuppressionSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Which category holds the messages of which other one."""
        return _pairs(pairs_of(live_dataset(name)))

    @extend_schema(request=shapes.PutSuppressionSerializer, responses=shapes.SuppressionSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Adds a pair, or takes one of the default away. A cycle is refused, and named."""
        dataset = _dataset_to_change(request, name)
        said = valid(shapes.PutSuppressionSerializer, request)
        actor = person(request).get_username()
        return _pairs(suppressions.put(dataset, **said, actor=actor, now=wiring.clock.now()))

    @extend_schema(request=None, responses=shapes.SuppressionSerializer)
    def delete(self, request: Request, name: str) -> Response:
        """The default counts again: freshness holds all others."""
        dataset = _dataset_to_change(request, name)
        return _pairs(suppressions.reset(dataset, actor=person(request).get_username(), now=wiring.clock.now()))


class UpstreamIncidents(APIView):
    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(responses=shapes.UpstreamIncidentSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """Open incidents of what the dataset is made from, the nearest first."""
        return Response(shapes.UpstreamIncidentSerializer(open_upstream(live_dataset(name)), many=True).data)


class Routes(APIView):
    scopes = SCOPES

    @extend_schema(responses=shapes.RouteSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """Where the team hears of its incidents. None: at its e-mail address and webhook."""
        team = routes.team_named(name)
        return Response(shapes.RouteSerializer(team.routes.order_by("pk"), many=True).data)

    @extend_schema(request=shapes.PutRouteSerializer, responses={201: shapes.RouteSerializer})
    def post(self, request: Request, name: str) -> Response:
        """A new route. From the first one on, only routes are told."""
        team = _team_to_change(request, name)
        said = valid(shapes.PutRouteSerializer, request)
        made = routes.put(team, said, actor=person(request).get_username(), now=wiring.clock.now())
        return Response(shapes.RouteSerializer(made).data, status.HTTP_201_CREATED)


class OneRoute(APIView):
    scopes = SCOPES

    @extend_schema(responses=shapes.RouteSerializer)
    def get(self, request: Request, name: str, number: int) -> Response:
        return Response(shapes.RouteSerializer(routes.route_of(routes.team_named(name), number)).data)

    @extend_schema(request=shapes.ChangeRouteSerializer, responses=shapes.RouteSerializer)
    def patch(self, request: Request, name: str, number: int) -> Response:
        """Changes what is said of it."""
        team = _team_to_change(request, name)
        said = valid(shapes.ChangeRouteSerializer, request)
        actor = person(request).get_username()
        made = routes.put(team, said, actor=actor, now=wiring.clock.now(), number=number)
        return Response(shapes.RouteSerializer(made).data)

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, name: str, number: int) -> Response:
        """Takes it away. What it kept for later goes out at once."""
        team = _team_to_change(request, name)
        routes.remove(team, number, actor=person(request).get_username(), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class AlertCoverage(APIView):
    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(parameters=[OpenApiParameter("tier", int, many=True)], responses=CoverageSerializer)
    def get(self, request: Request) -> Response:
        """Of how many datasets somebody would hear whatever fails, and what the others lack."""
        tiers = [_tier(text) for text in request.query_params.getlist("tier")] or HIGHEST
        return Response(CoverageSerializer(alert_coverage.coverage(tiers, now=wiring.clock.now())).data)


def _tier(text: str) -> int:
    known = {str(tier): tier for tier in TIERS}
    if text not in known:
        raise Refused.because({"tier": f"There is no tier `{text}`: tiers go from 0 (highest) to {max(TIERS)}."})
    return known[text]


def _dataset_to_change(request: Request, name: str) -> Dataset:
    dataset = live_dataset(name)
    require(request.user, "onboard", dataset.team)
    return dataset


def _team_to_change(request: Request, name: str) -> Team:
    team = routes.team_named(name)
    require(request.user, "onboard", team)
    return team


def _pairs(pairs: frozenset[Pair]) -> Response:
    said = {"pairs": sorted(pairs), "is_default": pairs == DEFAULT}
    return Response(shapes.SuppressionSerializer(said).data)
