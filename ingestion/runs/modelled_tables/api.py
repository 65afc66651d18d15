"""Pipelines over REST."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ingestion.domain.pipelines.problems import BadPipeline
from ingestion.domain.pipelines.reading import inputs_of
from ingestion.models import Pipeline
from ingestion.pipelines.registering import check_pipeline
from ingestion.runs.modelled_tables.progress import progress_of
from ingestion.runs.modelled_tables.registration import register
from ingestion.runs.modelled_tables.serializers import (
    CheckedPipelineSerializer,
    CopyProgressSerializer,
    PipelineFilesSerializer,
    PipelineSerializer,
    RegistrationSerializer,
)
from lakehub import wiring
from lakehub.accounts.permissions import require, require_in_some_team
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.kernel.errors import NotFound, Refused


class ModelledTables(APIView):
    scopes: ClassVar = {"POST": "catalog:write"}

    @extend_schema(
        operation_id="modelled_tables_register",
        parameters=[
            OpenApiParameter("check", str, description="1: says what would be registered, and changes nothing.")
        ],
        request=PipelineFilesSerializer,
        responses={200: CheckedPipelineSerializer, 201: RegistrationSerializer},
    )
    def post(self, request: Request) -> Response:
        """Registers a pipeline, or changes the one of its name. What is wrong is told by file, with its line."""
        require_in_some_team(request.user, "onboard")
        body = PipelineFilesSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        texts, user = body.validated_data["files"], request.user
        with _refused_by_file():
            if request.query_params.get("check") == "1":
                return Response(CheckedPipelineSerializer(check_pipeline(texts)).data)
            done = register(
                texts, actor=user.get_username(), may=partial(require, user, "onboard"), now=wiring.clock.now()
            )
        return Response(RegistrationSerializer(done).data, status.HTTP_201_CREATED)


class PipelineDetail(APIView):
    scopes: ClassVar = {"GET": "catalog:read"}

    @extend_schema(operation_id="datasets_pipeline", responses=PipelineSerializer)
    def get(self, request: Request, name: str) -> Response:
        """What makes the rows of a dataset: the files of its pipeline, as they were registered last."""
        dataset = live_dataset(name)
        registered = Pipeline.objects.filter(dataset=dataset).first()
        if registered is None:
            raise NotFound(f"Dataset `{name}` is not made by a pipeline.")
        facts = {name: getattr(registered, name) for name in ("files", "changed_at", "changed_by")}
        return Response(PipelineSerializer(facts | {"inputs": inputs_of(registered.files)}).data)


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


@contextmanager
def _refused_by_file() -> Iterator[None]:
    try:
        yield
    except BadPipeline as bad:
        lines = defaultdict(list)
        for problem in bad.problems:
            lines[problem.file].append(f"line {problem.line}: {problem.text}" if problem.line else problem.text)
        raise Refused.for_fields({file: " ".join(texts) for file, texts in lines.items()}) from bad
