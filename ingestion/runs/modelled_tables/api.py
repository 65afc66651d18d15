"""Pipelines over REST."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ingestion.domain.pipelines.problems import BadPipeline
from ingestion.domain.pipelines.reading import inputs_of
from ingestion.models import Pipeline, RefusedBatch
from ingestion.pipelines.checking import check_pipeline
from ingestion.pipelines.column_lineage import shown_lineage
from ingestion.pipelines.planning import plan_of
from ingestion.pipelines.rights import require_registration
from ingestion.runs.modelled_tables.decisions import drop, publish
from ingestion.runs.modelled_tables.progress import progress_of
from ingestion.runs.modelled_tables.registration import register
from ingestion.runs.modelled_tables.serializers import (
    ColumnLineageSerializer,
    CopyProgressSerializer,
    DecisionSerializer,
    PipelineFilesSerializer,
    PipelineSerializer,
    PlanSerializer,
    RefusedBatchSerializer,
    RegistrationSerializer,
)
from lakehub import wiring
from lakehub.accounts.permissions import can, require, require_in_some_team
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import NotFound, Refused


class ModelledTables(APIView):
    scopes: ClassVar = {"POST": "catalog:write"}

    @extend_schema(
        operation_id="modelled_tables_register",
        parameters=[OpenApiParameter("check", str, description="1: the plan, and nothing is changed.")],
        request=PipelineFilesSerializer,
        responses={200: PlanSerializer, 201: RegistrationSerializer},
    )
    def post(self, request: Request) -> Response:
        """Registers a pipeline, or changes the one of its name. What is wrong is told by file, with its line."""
        require_in_some_team(request.user, "onboard")
        body = PipelineFilesSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        texts, user = body.validated_data["files"], request.user
        with _refused_by_file():
            if request.query_params.get("check") == "1":
                checked = check_pipeline(texts)
                require_registration(user, checked)
                return Response(PlanSerializer(plan_of(checked)).data)
            done = register(
                texts,
                actor=user.get_username(),
                may=partial(require_registration, user),
                basis=body.validated_data["basis"],
                now=wiring.clock.now(),
            )
        return Response(RegistrationSerializer(done).data, status.HTTP_201_CREATED)


class PipelineDetail(APIView):
    scopes: ClassVar = {"GET": "catalog:read"}

    @extend_schema(operation_id="datasets_pipeline", responses=PipelineSerializer)
    def get(self, request: Request, name: str) -> Response:
        """What makes the rows of a dataset: the files of its pipeline, as they were registered last."""
        registered = _registered(name)
        facts = {name: getattr(registered, name) for name in ("files", "changed_at", "changed_by")}
        return Response(PipelineSerializer(facts | {"inputs": inputs_of(registered.files)}).data)


class PipelineLineage(APIView):
    scopes: ClassVar = {"GET": "catalog:read"}

    @extend_schema(operation_id="datasets_pipeline_lineage", responses=ColumnLineageSerializer)
    def get(self, request: Request, name: str) -> Response:
        """From which columns of its inputs each column of a modelled table is made, and what decides which rows it has."""
        return Response(ColumnLineageSerializer(shown_lineage(_registered(name))).data)


class RefusedBatchList(ListAPIView[RefusedBatch]):
    """Newest first: rows that runs have made and that audits did not let into the table."""

    scopes: ClassVar = {"GET": "ingestion:read"}
    serializer_class = RefusedBatchSerializer

    def get_queryset(self) -> QuerySet[RefusedBatch]:
        batches = RefusedBatch.objects.filter(copy__dataset=self._dataset, copy__removed_at=None)
        return batches.select_related("copy__data_center").order_by("-pk")

    def get_serializer_context(self) -> dict[str, Any]:
        may_see_rows = can(self.request.user, "see rows", self._dataset.team)
        return {**super().get_serializer_context(), "may_see_rows": may_see_rows}

    @cached_property
    def _dataset(self) -> Dataset:
        return live_dataset(self.kwargs["name"])


class RefusedBatchDecision(APIView):
    scopes: ClassVar = {"POST": "ingestion:run"}

    @extend_schema(
        operation_id="datasets_refused_batches_decide",
        request=DecisionSerializer,
        responses={200: RefusedBatchSerializer},
    )
    def post(self, request: Request, name: str, number: int) -> Response:
        """Publishes what was refused, or drops it. A run does it, and the batch is over when that has ended. Rows that were fixed in the inputs need no decision."""
        dataset = live_dataset(name)
        require(request.user, "override", dataset.team)
        body = DecisionSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        batch = RefusedBatch.objects.filter(pk=number, copy__dataset=dataset, copy__removed_at=None).first()
        if batch is None:
            raise NotFound(f"Dataset `{name}` has no refused batch {number}.")
        decide = {"publish": publish, "drop": drop}[body.validated_data["decision"]]
        seen, reason = body.validated_data["run"], body.validated_data["reason"]
        decide(batch, seen=seen, reason=reason, actor=request.user.get_username(), now=wiring.clock.now())
        batch.refresh_from_db()
        may_see_rows = can(request.user, "see rows", dataset.team)
        return Response(RefusedBatchSerializer(batch, context={"may_see_rows": may_see_rows}).data)


class PipelineProgress(APIView):
    scopes: ClassVar = {"GET": "ingestion:read"}

    @extend_schema(operation_id="datasets_pipeline_progress", responses=CopyProgressSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """Of each copy of a modelled table: how far its pipeline has read its inputs, which commits wait and since when, and its newest run. Its runs
        are with those of the dataset."""
        dataset, now = live_dataset(name), wiring.clock.now()
        copies = dataset.copies.select_related("dataset", "data_center").order_by("data_center__name")
        progress = progress_of([*copies], now=now)
        if not progress and not Pipeline.objects.filter(dataset=dataset).exists():
            raise NotFound(f"Dataset `{name}` is not made by a pipeline.")
        return Response([CopyProgressSerializer(each, context={"now": now}).data for each in progress])


def _registered(name: str) -> Pipeline:
    """Raises NotFound."""
    registered = Pipeline.objects.filter(dataset=live_dataset(name)).select_related("dataset").first()
    if registered is None:
        raise NotFound(f"Dataset `{name}` is not made by a pipeline.")
    return registered


@contextmanager
def _refused_by_file() -> Iterator[None]:
    try:
        yield
    except BadPipeline as bad:
        lines = defaultdict(list)
        for problem in bad.problems:
            lines[problem.file].append(f"line {problem.line}: {problem.text}" if problem.line else problem.text)
        raise Refused.for_fields({file: " ".join(texts) for file, texts in lines.items()}) from bad
