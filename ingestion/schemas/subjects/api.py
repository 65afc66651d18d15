"""Subjects over REST, below /api/v1/schemas: what the pages show of them. Whoever changes something asks the schema registry."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ingestion.domain.avro.columns import columns_of
from ingestion.models import SchemaSubject
from ingestion.schemas import registry
from ingestion.schemas.api import VERSION
from ingestion.schemas.serializers import RULES, SchemaSerializer, schema_text
from ingestion.schemas.subjects.listing import SubjectFilters, subject_rows, subjects_matching
from ingestion.schemas.subjects.proposals import diff_of_versions, look_at_proposal
from ingestion.schemas.subjects.serializers import (
    ColumnListSerializer,
    ProposalSerializer,
    RegisteredVersionSerializer,
    SchemaDiffSerializer,
    SubjectSerializer,
)


class Subjects(GenericAPIView[SchemaSubject]):
    scopes: ClassVar = {"GET": "schemas:read"}
    serializer_class = SubjectSerializer

    @extend_schema(
        operation_id="schemas_list",
        parameters=[
            OpenApiParameter("q", str, description="In the name."),
            OpenApiParameter("team", str, description="Whose they are.", many=True),
            OpenApiParameter("compatibility", str, description="By which rule.", enum=RULES, many=True),
        ],
        responses=SubjectSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """Subjects by name, with their newest version."""
        query = request.query_params
        filters = SubjectFilters(
            query.get("q", "").strip(),
            frozenset(query.getlist("team")),
            frozenset(rule.lower() for rule in query.getlist("compatibility")),
        )
        page = self.paginate_queryset(subjects_matching(filters))
        return self.get_paginated_response(SubjectSerializer(subject_rows(page or []), many=True).data)


class SubjectVersions(APIView):
    scopes: ClassVar = {"GET": "schemas:read"}

    @extend_schema(operation_id="schemas_versions", responses=RegisteredVersionSerializer(many=True))
    def get(self, request: Request, subject: str) -> Response:
        """The versions of a subject, newest first, without their schemas."""
        versions = registry.find_subject(subject).versions.defer("text").order_by("-version")
        return Response(RegisteredVersionSerializer(versions, many=True).data)


class VersionColumns(APIView):
    scopes: ClassVar = {"GET": "schemas:read"}

    @extend_schema(operation_id="schemas_columns", parameters=[VERSION], responses=ColumnListSerializer)
    def get(self, request: Request, subject: str, version: str) -> Response:
        """The columns of a version, with the fields of structures below them."""
        chosen = registry.find_version(subject, registry.version_number(version))
        return Response(ColumnListSerializer(columns_of(registry.schema_of(chosen))).data)


class VersionDiff(APIView):
    scopes: ClassVar = {"GET": "schemas:read"}

    @extend_schema(
        operation_id="schemas_diff",
        parameters=[
            OpenApiParameter("from", str, required=True, description="A version, or `latest`."),
            OpenApiParameter("to", str, description="Another one; left out: the newest."),
        ],
        responses=SchemaDiffSerializer,
    )
    def get(self, request: Request, subject: str) -> Response:
        """What differs between two versions: columns that were added, removed, renamed (by an alias) or changed."""
        versions = [
            registry.find_version(subject, registry.version_number(request.query_params.get(name, usual)))
            for name, usual in (("from", ""), ("to", "latest"))
        ]
        return Response(SchemaDiffSerializer(diff_of_versions(*versions)).data)


class SchemaProposal(APIView):
    scopes: ClassVar = {"POST": "schemas:read"}

    @extend_schema(operation_id="schemas_proposal", request=SchemaSerializer, responses=ProposalSerializer)
    def post(self, request: Request, subject: str) -> Response:
        """What a schema would change in a subject, which may be a new one, and why it may not follow. Nothing is registered."""
        body = SchemaSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        proposal: Any = look_at_proposal(subject, schema_text(body.validated_data))
        return Response(ProposalSerializer(proposal).data)
