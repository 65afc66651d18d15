"""Incidents over REST: the list, one of them, and reports by users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from incidents.api.request_parsing import checked_choice, current_user, validated_body
from incidents.api.serializers.actions import ReportSerializer
from incidents.api.serializers.incidents import IncidentDetailSerializer, IncidentSerializer
from incidents.gate import copies
from incidents.lifecycle import user_reports
from incidents.models import FalsePositive, Incident, IncidentState
from incidents.record import transitions
from incidents.record.likely_cause import likely_cause
from incidents.scores.drilldown import DRILLDOWN_NUMBERS, drilldown_incidents
from incidents.scores.scope import parse_scope, parse_window
from lakehub import wiring
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.request_times import parse_range
from quality.models import Category


class Incidents(ListAPIView[Incident]):
    """Incidents, newest first; `state`, `dataset`, `category` and `open=1` narrow the list.

    `behind` is a number of the scores: exactly the incidents that it counts in `[from, to)`, narrowed as the score was.
    """

    scopes: ClassVar = {"GET": "incidents:read", "POST": "incidents:write"}
    serializer_class = IncidentSerializer

    def get_queryset(self) -> QuerySet[Incident]:
        query_params = self.request.query_params
        rows = (
            self._behind(query_params) if query_params.get("behind") else Incident.objects.order_by("-opened_at", "-pk")
        )
        rows = rows.select_related("dataset", "assignee")
        if query_params.get("open") == "1":
            rows = rows.filter(resolved_at=None)
        for name, field, words in (
            ("state", "state", IncidentState.values),
            ("category", "category", Category.values),
        ):
            if value := query_params.get(name):
                rows = rows.filter(**{field: checked_choice(name, value, words)})
        if query_params.get("dataset"):
            rows = rows.filter(dataset__name=query_params["dataset"])
        return rows

    def _behind(self, query_params: Mapping[str, str]) -> QuerySet[Incident]:
        window, kind = parse_window(query_params, now=wiring.clock.now()), query_params.get("kind", "")
        if kind:
            checked_choice("kind", kind, FalsePositive.values)
        return drilldown_incidents(query_params["behind"], window, parse_scope(query_params), kind=kind)

    @extend_schema(
        parameters=[
            *(OpenApiParameter(name, str) for name in ("state", "category", "dataset", "open")),
            OpenApiParameter("behind", str, enum=list(DRILLDOWN_NUMBERS), description="With these also:"),
            *(OpenApiParameter(name, str) for name in ("from", "to", "team", "test")),
            OpenApiParameter("days", int, description="Before `to`, instead of `from`."),
            OpenApiParameter("tier", int),
            OpenApiParameter("kind", str, enum=FalsePositive.values, description="Of false positives only those."),
        ],
        responses=IncidentSerializer(many=True),
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(request=ReportSerializer, responses={201: IncidentDetailSerializer})
    def post(self, request: Request) -> Response:
        """Reports what no test saw. Everybody who is signed in may."""
        validated_data = validated_body(ReportSerializer, request)
        dataset = live_dataset(validated_data["dataset"])
        incident = user_reports.file_report(
            dataset,
            validated_data["category"],
            parse_range(validated_data["from"], validated_data["to"], dataset),
            text=validated_data["text"],
            reporter=current_user(request),
            now=wiring.clock.now(),
            copy=copies.find_copy(dataset.name, validated_data["dc"]) if validated_data["dc"] else None,
            occurred_at=validated_data["occurred_at"],
        )
        return incident_response(incident.pk, status.HTTP_201_CREATED)


class IncidentDetail(APIView):
    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(responses=IncidentDetailSerializer)
    def get(self, request: Request, number: int) -> Response:
        """The incident with its spans, its timeline and its messages."""
        return incident_response(number)


def incident_response(number: int, code: int = status.HTTP_200_OK) -> Response:
    transitions.incident_by_number(number)
    related = ("spans__copy__data_center", "spans__unit__test__version", "events", "messages__deliveries")
    incident = Incident.objects.select_related("dataset", "assignee").prefetch_related(*related).get(pk=number)
    cause = likely_cause(incident, now=wiring.clock.now(), spans=list(incident.spans.all()))
    return Response(IncidentDetailSerializer(incident, context={"cause": cause}).data, code)
