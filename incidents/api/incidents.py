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

from incidents import moves, reports
from incidents.api.common import known, person, valid
from incidents.causes import likely_cause
from incidents.gate import answers as gate
from incidents.models import FalsePositive, Incident, State
from incidents.scores.behind import NUMBERS, behind
from incidents.scores.scope import wanted_scope, wanted_window
from incidents.shapes.actions import ReportSerializer
from incidents.shapes.incidents import IncidentDetailSerializer, IncidentSerializer
from lakehub import wiring
from lakehub.catalog.changes import live_dataset
from lakehub.catalog.instants import wanted_range
from quality.models import Category


class Incidents(ListAPIView[Incident]):
    """Incidents, newest first; `state`, `dataset`, `category` and `open=1` narrow the list.

    `behind` is a number of the scores: exactly the incidents that it counts in `[from, to)`, narrowed as the score was.
    """

    scopes: ClassVar = {"GET": "incidents:read", "POST": "incidents:write"}
    serializer_class = IncidentSerializer

    def get_queryset(self) -> QuerySet[Incident]:
        asked = self.request.query_params
        rows = self._behind(asked) if asked.get("behind") else Incident.objects.order_by("-opened_at", "-pk")
        rows = rows.select_related("dataset", "assignee")
        if asked.get("open") == "1":
            rows = rows.filter(resolved_at=None)
        for name, field, words in (
            ("state", "state", State.values),
            ("category", "category", Category.values),
        ):
            if value := asked.get(name):
                rows = rows.filter(**{field: known(name, value, words)})
        if asked.get("dataset"):
            rows = rows.filter(dataset__name=asked["dataset"])
        return rows

    def _behind(self, asked: Mapping[str, str]) -> QuerySet[Incident]:
        window, kind = wanted_window(asked, now=wiring.clock.now()), asked.get("kind", "")
        if kind:
            known("kind", kind, FalsePositive.values)
        return behind(asked["behind"], window, wanted_scope(asked), kind=kind)

    @extend_schema(
        parameters=[
            *(OpenApiParameter(name, str) for name in ("state", "category", "dataset", "open")),
            OpenApiParameter("behind", str, enum=list(NUMBERS), description="With these also:"),
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
        said = valid(ReportSerializer, request)
        dataset = live_dataset(said["dataset"])
        made = reports.report(
            dataset,
            said["category"],
            wanted_range(said["from"], said["to"], dataset),
            text=said["text"],
            reporter=person(request),
            now=wiring.clock.now(),
            copy=gate.find_copy(dataset.name, said["dc"]) if said["dc"] else None,
            occurred_at=said["occurred_at"],
        )
        return shown(made.pk, status.HTTP_201_CREATED)


class OneIncident(APIView):
    scopes: ClassVar = {"GET": "incidents:read"}

    @extend_schema(responses=IncidentDetailSerializer)
    def get(self, request: Request, number: int) -> Response:
        """The incident with its spans, its timeline and its messages."""
        return shown(number)


def shown(number: int, code: int = status.HTTP_200_OK) -> Response:
    moves.find(number)
    related = ("spans__copy__data_center", "spans__unit__test__version", "events", "messages__deliveries")
    incident = Incident.objects.select_related("dataset", "assignee").prefetch_related(*related).get(pk=number)
    cause = likely_cause(incident, now=wiring.clock.now(), spans=list(incident.spans.all()))
    return Response(IncidentDetailSerializer(incident, context={"cause": cause}).data, code)
