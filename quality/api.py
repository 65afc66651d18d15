"""Quality over REST: the tests of a dataset, their units and results, expressions, and running now."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakehub import wiring
from lakehub.accounts import audit
from lakehub.accounts.models import Team
from lakehub.accounts.permissions import require
from lakehub.catalog.changes import live_dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Verdict
from lakehub.kernel.suggest import did_you_mean
from quality import asking, coverage, generator, reports, versions
from quality.described import described
from quality.domain.expression import ExpressionError, flattened, readable, understand
from quality.domain.tiers import TIERS, BadOverride, told
from quality.models import Coverage, Result, SkippedCheck, Test, Unit
from quality.serializers import (
    AskExpressionSerializer,
    CheckedSerializer,
    CoverageSerializer,
    DatasetCoverageSerializer,
    NewTestSerializer,
    RanSerializer,
    ResultSerializer,
    RunSerializer,
    SkippedSerializer,
    TestSerializer,
    TierSerializer,
    UnitSerializer,
    VersionSerializer,
    WeeklyReportSerializer,
)

SCOPES: dict[str, str] = {"GET": "quality:read"} | dict.fromkeys(("POST", "DELETE"), "catalog:write")


class Tests(ListAPIView[Test]):
    """The live tests of a dataset."""

    scopes = SCOPES
    serializer_class = TestSerializer

    def get_queryset(self) -> QuerySet[Test]:
        dataset = live_dataset(self.kwargs["name"])
        return dataset.tests.filter(retired_at=None).select_related("version").order_by("category", "key")

    @extend_schema(request=NewTestSerializer, responses={201: TestSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Writes a test, or a new version of one; `?check=1` only says how its expression is understood."""
        dataset = live_dataset(name)
        require(request.user, "onboard", dataset.team)
        asked = NewTestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        if request.query_params.get("check") == "1":
            return Response(_understood(name, asked.validated_data["expression"]))
        actor, now = request.user.get_username(), wiring.clock.now()
        made = generator.write_test(dataset, **asked.validated_data, actor=actor, now=now)
        audit.record(actor, "write test", f"dataset:{name}", now=now, key=made.key)
        return Response(TestSerializer(made).data, status.HTTP_201_CREATED)


class OneTest(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=TestSerializer)
    def get(self, request: Request, name: str, key: str) -> Response:
        return Response(TestSerializer(asking.test_of(live_dataset(name), key)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, key: str) -> Response:
        """Retires a test that a person wrote. Its results stay; what it found open ends."""
        dataset = live_dataset(name)
        require(request.user, "onboard", dataset.team)
        test = asking.test_of(dataset, key)
        if test.generated:
            raise Refused(f"`{key}` is generated: change the metadata or the overrides of {name} instead.")
        now = wiring.clock.now()
        generator.retire_test(test, now=now)
        audit.record(request.user.get_username(), "retire test", f"dataset:{name}", now=now, key=key)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Skipped(ListAPIView[SkippedCheck]):
    """The types of test that the dataset cannot have, and what is missing to have them."""

    scopes = SCOPES
    serializer_class = SkippedSerializer

    def get_queryset(self) -> QuerySet[SkippedCheck]:
        return live_dataset(self.kwargs["name"]).skipped_checks.order_by("check_name")


class RunNow(APIView):
    scopes: ClassVar = {"POST": "quality:run"}

    @extend_schema(request=RunSerializer, responses={202: RanSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Runs tests now, ahead of what is due. Names no test: all of them."""
        dataset = live_dataset(name)
        require(request.user, "rerun", dataset.team)
        asked = RunSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said = asked.validated_data
        over = _range(said["start"], said["end"])
        units = asking.run_now(
            dataset,
            tests=said["tests"],
            data_center=said["data_center"],
            over=over,
            actor=request.user.get_username(),
            now=wiring.clock.now(),
        )
        return Response({"units": units}, status.HTTP_202_ACCEPTED)


@extend_schema(
    parameters=[OpenApiParameter("verdict", str), OpenApiParameter("dc", str), OpenApiParameter("test", str)]
)
class Units(ListAPIView[Unit]):
    """What is believed of a dataset, test by test, copy by copy and partition by partition; newest range first."""

    scopes = SCOPES
    serializer_class = UnitSerializer

    def get_queryset(self) -> QuerySet[Unit]:
        asked = self.request.query_params
        units = Unit.objects.filter(test__dataset=live_dataset(self.kwargs["name"]), test__retired_at=None)
        if verdict := asked.get("verdict"):
            if verdict not in list(Verdict):
                raise Refused(f"There is no verdict `{verdict}`.{did_you_mean(verdict, list(Verdict))}")
            units = units.filter(verdict=verdict)
        if center := asked.get("dc"):
            units = units.filter(copy__data_center__name=center)
        if key := asked.get("test"):
            units = units.filter(test__key=key)
        return units.select_related("test", "copy__data_center").order_by("-start", "test__key", "pk")


class Results(ListAPIView[Result]):
    """The stored results of one unit, newest first."""

    scopes = SCOPES
    serializer_class = ResultSerializer

    def get_queryset(self) -> QuerySet[Result]:
        number = self.kwargs["number"]
        if not Unit.objects.filter(pk=number).exists():
            raise NotFound(f"There is no unit {number}.")
        return Result.objects.filter(unit=number).select_related("version").order_by("-read_at", "-pk")


class Expression(APIView):
    scopes: ClassVar = {"POST": "quality:read"}

    @extend_schema(request=AskExpressionSerializer, responses=CheckedSerializer)
    def post(self, request: Request, name: str) -> Response:
        """How an expression is understood for this dataset: its stored form, or where it is wrong."""
        asked = AskExpressionSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        return Response(_understood(name, asked.validated_data["expression"]))


class Versions(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=VersionSerializer(many=True))
    def get(self, request: Request, name: str, key: str) -> Response:
        """What the test asked over time: each version with what changed and because of which metadata. Newest first."""
        test = asking.test_of(live_dataset(name), key)
        return Response([VersionSerializer(change).data for change in versions.history(test)])


class DatasetCoverage(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=DatasetCoverageSerializer)
    def get(self, request: Request, name: str) -> Response:
        """For which version of its metadata the tests of the dataset were made, and what they lack."""
        dataset = live_dataset(name)
        why, made = coverage.lacks(dataset), Coverage.objects.filter(dataset=dataset).first() or Coverage()
        told = {
            "covered": not why,
            "why": why,
            "metadata_version": dataset.metadata_version,
            "made_for_version": made.metadata_version,
            "made_at": made.generated_at,
            "problem": made.problem,
            "retry_at": made.retry_at,
        }
        return Response(DatasetCoverageSerializer(told).data)


class WholeCoverage(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(
        parameters=[OpenApiParameter("tier", int, many=True, description="0 and 1 where none is given")],
        responses=CoverageSerializer,
    )
    def get(self, request: Request) -> Response:
        """How many datasets of these tiers are tested as their metadata allows, and what the others lack."""
        tiers = [_tier(text) for text in request.query_params.getlist("tier")] or coverage.HIGHEST
        return Response(CoverageSerializer(coverage.coverage(tiers, now=wiring.clock.now())).data)


class Weekly(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(parameters=[OpenApiParameter("team", str, required=True)], responses=WeeklyReportSerializer)
    def get(self, request: Request) -> Response:
        """What a team's owners are told this week, as it is now."""
        name = request.query_params.get("team", "")
        team = Team.objects.filter(name=name).first()
        if team is None:
            raise NotFound(
                f"There is no team `{name}`.{did_you_mean(name, Team.objects.values_list('name', flat=True))}"
            )
        return Response(WeeklyReportSerializer(reports.weekly(team, now=wiring.clock.now())).data)


class Tiers(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=TierSerializer(many=True))
    def get(self, request: Request) -> Response:
        """What each tier promises, where a dataset does not say otherwise."""
        return Response(
            TierSerializer([{"tier": tier, "slas": told(slas)} for tier, slas in TIERS.items()], many=True).data
        )


def _tier(text: str) -> int:
    if text not in map(str, TIERS):
        raise Refused(f"There is no tier `{text}`: choose 0 (highest) to {max(TIERS)}.")
    return int(text)


def _understood(name: str, text: str) -> dict[str, Any]:
    try:
        expression = understand(text, described(live_dataset(name)).scope)
    except (ExpressionError, BadOverride) as problem:
        raise Refused.because({"expression": str(problem)}) from problem
    return {"flattened": flattened(expression), "readable": readable(expression)}


def _range(start: Any, end: Any) -> Interval:
    try:
        return Interval(start, end)
    except ValueError as problem:
        raise Refused.because({"end": str(problem)}) from problem
