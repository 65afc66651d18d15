"""Quality over REST: the tests of a dataset, their units and results, expressions, and running now."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakehub import wiring
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import User
from lakehub.accounts.permissions import require
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.kernel.errors import Refused
from quality.api import SCOPES
from quality.api.serializers import (
    CheckedExpressionSerializer,
    ExpressionInputSerializer,
    QualityTestInputSerializer,
    QualityTestSerializer,
    SkippedCheckSerializer,
    VersionSerializer,
)
from quality.domain.language import ExpressionError, flattened, readable, understand
from quality.domain.slas import BadOverride
from quality.generation import custom_tests, version_history
from quality.models import QualityTest, SkippedCheck
from quality.state import live_tests
from quality.state.dataset_facts import dataset_facts


class QualityTestList(ListAPIView[QualityTest]):
    """The live tests of a dataset."""

    scopes = SCOPES
    serializer_class = QualityTestSerializer

    def get_queryset(self) -> QuerySet[QualityTest]:
        dataset = live_dataset(self.kwargs["name"])
        return dataset.tests.filter(retired_at=None).select_related("version").order_by("category", "key")

    @extend_schema(request=QualityTestInputSerializer, responses={201: QualityTestSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Writes a test, or a new version of one; `?check=1` only says how its expression is understood."""
        dataset = live_dataset(name)
        require(request.user, "onboard", dataset.team)
        serializer = QualityTestInputSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        if request.query_params.get("check") == "1":
            return Response(_checked_expression(name, serializer.validated_data["expression"]))
        actor, now = request.user.get_username(), wiring.clock.now()
        test = custom_tests.write_custom_test(
            dataset, **serializer.validated_data, actor=actor, author=cast("User", request.user), now=now
        )
        audit_log.record(actor, "write test", f"dataset:{name}", now=now, key=test.key)
        return Response(QualityTestSerializer(test).data, status.HTTP_201_CREATED)


class QualityTestDetail(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=QualityTestSerializer)
    def get(self, request: Request, name: str, key: str) -> Response:
        return Response(QualityTestSerializer(live_tests.live_test(live_dataset(name), key)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, key: str) -> Response:
        """Retires a test that a person wrote. Its results stay; what it found open ends."""
        dataset = live_dataset(name)
        require(request.user, "onboard", dataset.team)
        test = live_tests.live_test(dataset, key)
        if test.generated:
            raise Refused(f"`{key}` is generated: change the metadata or the overrides of {name} instead.")
        now = wiring.clock.now()
        custom_tests.retire_test(test, now=now)
        audit_log.record(request.user.get_username(), "retire test", f"dataset:{name}", now=now, key=key)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SkippedCheckList(ListAPIView[SkippedCheck]):
    """The types of test that the dataset cannot have, and what is missing to have them."""

    scopes = SCOPES
    serializer_class = SkippedCheckSerializer

    def get_queryset(self) -> QuerySet[SkippedCheck]:
        return live_dataset(self.kwargs["name"]).skipped_checks.order_by("check_name")


class ExpressionCheck(APIView):
    scopes: ClassVar = {"POST": "quality:read"}

    @extend_schema(request=ExpressionInputSerializer, responses=CheckedExpressionSerializer)
    def post(self, request: Request, name: str) -> Response:
        """How an expression is understood for this dataset: its stored form, or where it is wrong."""
        serializer = ExpressionInputSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return Response(_checked_expression(name, serializer.validated_data["expression"]))


class VersionHistory(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=VersionSerializer(many=True))
    def get(self, request: Request, name: str, key: str) -> Response:
        """What the test asked over time: each version with what changed and because of which metadata. Newest first."""
        test = live_tests.live_test(live_dataset(name), key)
        return Response([VersionSerializer(change).data for change in version_history.version_history(test)])


def _checked_expression(name: str, text: str) -> dict[str, Any]:
    try:
        expression = understand(text, dataset_facts(live_dataset(name)).scope)
    except (ExpressionError, BadOverride) as problem:
        raise Refused.for_fields({"expression": str(problem)}) from problem
    return {"flattened": flattened(expression), "readable": readable(expression)}
