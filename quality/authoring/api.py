"""What people declare, over REST: rules of columns, business metrics, what rules are proposed, and trying a test on the past."""

from __future__ import annotations

from typing import ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakehub import wiring
from lakehub.accounts.models import Team
from lakehub.accounts.permissions import require
from lakehub.catalog.access import require_on_dataset
from lakehub.catalog.changes import live_dataset
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import did_you_mean
from lakehub.openapi import ErrorSerializer
from quality import metrics, rules
from quality.authoring.serializers import (
    AskBacktestSerializer,
    BacktestSerializer,
    MetricSerializer,
    NewMetricSerializer,
    NewRuleSerializer,
    ProposedSerializer,
    RuleSerializer,
)
from quality.backtest import one_at_a_time, run_backtest
from quality.models import ColumnRule, Metric
from quality.proposals import propose

SCOPES: dict[str, str] = {"GET": "quality:read"} | dict.fromkeys(("POST", "DELETE"), "catalog:write")


class Rules(ListAPIView[ColumnRule]):
    """What must hold of the columns of a dataset."""

    scopes = SCOPES
    serializer_class = RuleSerializer

    def get_queryset(self) -> QuerySet[ColumnRule]:
        return live_dataset(self.kwargs["name"]).column_rules.order_by("column", "kind", "by")

    @extend_schema(request=NewRuleSerializer, responses={201: RuleSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Sets a rule, or changes the one of that kind, column and dimension; its test is there at once."""
        dataset = live_dataset(name)
        require(request.user, "onboard", dataset.team)
        asked = NewRuleSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        row = rules.put(dataset, **asked.validated_data, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(RuleSerializer(row).data, status.HTTP_201_CREATED)


class OneRule(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=RuleSerializer)
    def get(self, request: Request, name: str, number: int) -> Response:
        return Response(RuleSerializer(rules.rule_of(live_dataset(name), number)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, number: int) -> Response:
        """Takes a rule back; its test is retired."""
        dataset = live_dataset(name)
        require(request.user, "onboard", dataset.team)
        row = rules.rule_of(dataset, number)
        rules.remove(row, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class Proposals(APIView):
    scopes: ClassVar = {"GET": "quality:run"}

    @extend_schema(
        parameters=[OpenApiParameter("dc", str)],
        responses={
            200: ProposedSerializer,
            409: OpenApiResponse(ErrorSerializer, "As many as may are reading there already."),
        },
    )
    def get(self, request: Request, name: str) -> Response:
        """Reads the last complete partition once, and proposes the rules that it keeps."""
        dataset = live_dataset(name)
        require(request.user, "rerun", dataset.team)
        found = propose(dataset, data_center=request.query_params.get("dc", ""), now=wiring.clock.now())
        return Response(ProposedSerializer(found).data)


@extend_schema(parameters=[OpenApiParameter("dataset", str)])
class Metrics(ListAPIView[Metric]):
    """The registered business metrics."""

    scopes = SCOPES
    serializer_class = MetricSerializer

    def get_queryset(self) -> QuerySet[Metric]:
        found = Metric.objects.select_related("dataset", "team").prefetch_related("inputs").order_by("name")
        if dataset := self.request.query_params.get("dataset"):
            found = found.filter(dataset=live_dataset(dataset))
        return found

    @extend_schema(request=NewMetricSerializer, responses={201: MetricSerializer})
    def post(self, request: Request) -> Response:
        """Registers a metric, or changes it; its standard tests are there at once."""
        require_on_dataset(request, "onboard")
        asked = NewMetricSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said = dict(asked.validated_data)
        dataset, team = live_dataset(said.pop("dataset")), _team(said.pop("team"))
        require(request.user, "onboard", dataset.team)
        if team is not None:
            require(request.user, "onboard", team)
        row = metrics.put(
            dataset, metrics.Said(**said), team=team, actor=request.user.get_username(), now=wiring.clock.now()
        )
        return Response(MetricSerializer(row).data, status.HTTP_201_CREATED)


class OneMetric(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=MetricSerializer)
    def get(self, request: Request, name: str) -> Response:
        return Response(MetricSerializer(metrics.metric_named(name)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Lets a metric go; its tests are retired."""
        row = metrics.metric_named(name)
        require(request.user, "onboard", row.dataset.team)
        metrics.remove(row, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class Backtests(APIView):
    scopes: ClassVar = {"POST": "quality:run"}

    @extend_schema(request=AskBacktestSerializer, responses=BacktestSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Tries a test on past partitions, one at a time. Nobody is alarmed, and nothing is stored of it."""
        dataset = live_dataset(name)
        require(request.user, "rerun", dataset.team)
        asked = AskBacktestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        with one_at_a_time(request.user.get_username()):
            tried = run_backtest(dataset, **asked.validated_data, now=wiring.clock.now())
        return Response(BacktestSerializer(tried).data)


def _team(name: str) -> Team | None:
    if not name:
        return None
    found = Team.objects.filter(name=name).first()
    if found is None:
        hint = did_you_mean(name, Team.objects.values_list("name", flat=True))
        raise Refused.because({"team": f"There is no team `{name}`.{hint}"})
    return found
