"""Backfills over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ingestion.models import Backfill
from ingestion.runs.backfills.progress import backfill_progress
from ingestion.runs.backfills.requests import PartitionChoice, change_backfill, find_backfill, request_backfill
from ingestion.runs.backfills.serializers import (
    BackfillActionSerializer,
    ChunkedBackfillDetailSerializer,
    ChunkedBackfillRequestSerializer,
    ChunkedBackfillSerializer,
)
from ingestion.runs.job_runs import find_copy
from lakehub import wiring
from lakehub.accounts.permissions import require
from lakehub.catalog.datasets.lookup import live_dataset


class BackfillList(ListAPIView[Any]):
    """The backfills of a modelled table, newest first."""

    scopes: ClassVar = {"GET": "ingestion:read", "POST": "ingestion:run"}
    serializer_class = ChunkedBackfillSerializer

    def get_queryset(self) -> QuerySet[Backfill]:
        backfills = Backfill.objects.filter(copy__dataset=live_dataset(self.kwargs["name"]))
        return backfills.select_related("copy__data_center").order_by("-pk")

    def paginate_queryset(self, queryset: Any) -> Any:
        return backfill_progress(super().paginate_queryset(queryset) or [])

    @extend_schema(request=ChunkedBackfillRequestSerializer, responses={201: ChunkedBackfillDetailSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Asks for partitions to be recomputed, chunk by chunk, beside the runs that follow the inputs. One at a time for each copy."""
        dataset = live_dataset(name)
        require(request.user, "rerun", dataset.team)
        body = ChunkedBackfillRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        values, actor = body.validated_data, request.user.get_username()
        choice = PartitionChoice(values["first"], values["last"], values["partitions"])
        copy = find_copy(dataset, values["data_center"])
        backfill = request_backfill(copy, choice, chunk_size=values["chunk_size"], actor=actor, now=wiring.clock.now())
        return Response(_shown(backfill), status.HTTP_201_CREATED)


class BackfillDetail(APIView):
    scopes: ClassVar = {"GET": "ingestion:read"}

    @extend_schema(operation_id="datasets_backfills_retrieve", responses=ChunkedBackfillDetailSerializer)
    def get(self, request: Request, name: str, number: int) -> Response:
        """How far it is: chunks, partitions and rows, the time left, and the chunks that failed."""
        return Response(_shown(find_backfill(live_dataset(name), number)))


class BackfillAction(APIView):
    scopes: ClassVar = {"POST": "ingestion:run"}

    @extend_schema(
        operation_id="datasets_backfills_change",
        request=BackfillActionSerializer,
        responses={200: ChunkedBackfillDetailSerializer},
    )
    def post(self, request: Request, name: str, number: int) -> Response:
        """Pauses it, lets it go on, cancels it, or tries again the chunks that failed. A chunk that is at work is left to end."""
        dataset = live_dataset(name)
        require(request.user, "rerun", dataset.team)
        body = BackfillActionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        backfill, actor = find_backfill(dataset, number), request.user.get_username()
        change_backfill(backfill, body.validated_data["action"], actor=actor, now=wiring.clock.now())
        return Response(_shown(backfill))


def _shown(backfill: Backfill) -> dict[str, Any]:
    (progress,) = backfill_progress([backfill])
    return ChunkedBackfillDetailSerializer(progress).data
