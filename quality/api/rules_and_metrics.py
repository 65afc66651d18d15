"""What people declare, over REST: rules of columns, business metrics, what rules are proposed, and trying a test on the past."""

from __future__ import annotations

from typing import ClassVar, cast

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakehub import wiring
from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import require
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.request_permissions import require_on_named_dataset
from lakehub.http.openapi import ErrorSerializer
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import did_you_mean
from quality.api.rule_serializers import (
    MetricInputSerializer,
    MetricSerializer,
    RuleInputSerializer,
    RuleSerializer,
    RuleSuggestionReportSerializer,
)
from quality.generation import business_metrics, rules
from quality.generation.rule_suggestions import suggest_rules
from quality.models import ColumnRule, Metric

SCOPES: dict[str, str] = {"GET": "quality:read"} | dict.fromkeys(("POST", "DELETE"), "catalog:write")


class RuleList(ListAPIView[ColumnRule]):
    """What must hold of the columns of a dataset."""

    scopes = SCOPES
    serializer_class = RuleSerializer

    def get_queryset(self) -> QuerySet[ColumnRule]:
        return live_dataset(self.kwargs["name"]).column_rules.order_by("column", "kind", "by")

    @extend_schema(request=RuleInputSerializer, responses={201: RuleSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Sets a rule, or changes the one of that kind, column and dimension; its test is there at once."""
        dataset = live_dataset(name)
        require(request.user, "onboard", dataset.team)
        serializer = RuleInputSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        row = rules.set_rule(
            dataset, **serializer.validated_data, actor=request.user.get_username(), now=wiring.clock.now()
        )
        return Response(RuleSerializer(row).data, status.HTTP_201_CREATED)


class RuleDetail(APIView):
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
        rules.remove_rule(row, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class RuleSuggestionList(APIView):
    scopes: ClassVar = {"GET": "quality:run"}

    @extend_schema(
        parameters=[OpenApiParameter("dc", str)],
        responses={
            200: RuleSuggestionReportSerializer,
            409: OpenApiResponse(ErrorSerializer, "As many as may are reading there already."),
        },
    )
    def get(self, request: Request, name: str) -> Response:
        """Reads the last complete partition once, and proposes the rules that it keeps."""
        dataset = live_dataset(name)
        require(request.user, "rerun", dataset.team)
        report = suggest_rules(dataset, data_center=request.query_params.get("dc", ""), now=wiring.clock.now())
        return Response(RuleSuggestionReportSerializer(report).data)


@extend_schema(parameters=[OpenApiParameter("dataset", str)])
class MetricList(ListAPIView[Metric]):
    """The registered business metrics."""

    scopes = SCOPES
    serializer_class = MetricSerializer

    def get_queryset(self) -> QuerySet[Metric]:
        metrics = Metric.objects.select_related("dataset", "team").prefetch_related("inputs").order_by("name")
        if dataset := self.request.query_params.get("dataset"):
            metrics = metrics.filter(dataset=live_dataset(dataset))
        return metrics

    @extend_schema(request=MetricInputSerializer, responses={201: MetricSerializer})
    def post(self, request: Request) -> Response:
        """Registers a metric, or changes it; its standard tests are there at once."""
        require_on_named_dataset(request, "onboard")
        serializer = MetricInputSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        validated_data = dict(serializer.validated_data)
        dataset, team = live_dataset(validated_data.pop("dataset")), _find_team(validated_data.pop("team"))
        require(request.user, "onboard", dataset.team)
        if team is not None:
            require(request.user, "onboard", team)
        row = business_metrics.set_metric(
            dataset,
            business_metrics.MetricInput(**validated_data),
            team=team,
            actor=request.user.get_username(),
            author=cast("User", request.user),
            now=wiring.clock.now(),
        )
        return Response(MetricSerializer(row).data, status.HTTP_201_CREATED)


class MetricDetail(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=MetricSerializer)
    def get(self, request: Request, name: str) -> Response:
        return Response(MetricSerializer(business_metrics.metric_named(name)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Lets a metric go; its tests are retired."""
        row = business_metrics.metric_named(name)
        require(request.user, "onboard", row.dataset.team)
        business_metrics.remove_metric(row, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


def _find_team(name: str) -> Team | None:
    if not name:
        return None
    team = Team.objects.filter(name=name).first()
    if team is None:
        hint = did_you_mean(name, Team.objects.values_list("name", flat=True))
        raise Refused.for_fields({"team": f"There is no team `{name}`.{hint}"})
    return team
