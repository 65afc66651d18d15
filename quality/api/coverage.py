"""Coverage, the weekly report and the tiers over REST."""

from __future__ import annotations

from typing import ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakehub import wiring
from lakehub.accounts.models import Team
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean
from quality.api import SCOPES
from quality.api.coverage_serializers import (
    CoverageSerializer,
    DatasetCoverageSerializer,
    TierSerializer,
    WeeklyReportSerializer,
)
from quality.domain.slas import TIERS, format_slas
from quality.generation import coverage, weekly_report
from quality.models import GenerationStatus


class DatasetCoverage(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=DatasetCoverageSerializer)
    def get(self, request: Request, name: str) -> Response:
        """For which version of its metadata the tests of the dataset were made, and what they lack."""
        dataset = live_dataset(name)
        why, generation_status = (
            coverage.coverage_gaps(dataset, now=wiring.clock.now()),
            GenerationStatus.objects.filter(dataset=dataset).first() or GenerationStatus(),
        )
        dataset_coverage = {
            "covered": not why,
            "why": why,
            "metadata_version": dataset.metadata_version,
            "made_for_version": generation_status.metadata_version,
            "made_at": generation_status.generated_at,
            "problem": generation_status.problem,
            "retry_at": generation_status.retry_at,
        }
        return Response(DatasetCoverageSerializer(dataset_coverage).data)


class CoverageSummary(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(
        parameters=[OpenApiParameter("tier", int, many=True, description="0 and 1 where none is given")],
        responses=CoverageSerializer,
    )
    def get(self, request: Request) -> Response:
        """How many datasets of these tiers are tested as their metadata allows, and what the others lack."""
        tiers = [_parse_tier(text) for text in request.query_params.getlist("tier")] or coverage.REQUIRED_TIERS
        return Response(CoverageSerializer(coverage.coverage_of_tiers(tiers, now=wiring.clock.now())).data)


class WeeklyReportDetail(APIView):
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
        return Response(WeeklyReportSerializer(weekly_report.weekly_report(team, now=wiring.clock.now())).data)


class TierList(APIView):
    scopes: ClassVar = SCOPES

    @extend_schema(responses=TierSerializer(many=True))
    def get(self, request: Request) -> Response:
        """What each tier promises, where a dataset does not say otherwise."""
        return Response(
            TierSerializer([{"tier": tier, "slas": format_slas(slas)} for tier, slas in TIERS.items()], many=True).data
        )


def _parse_tier(text: str) -> int:
    if text not in map(str, TIERS):
        raise Refused(f"There is no tier `{text}`: choose 0 (highest) to {max(TIERS)}.")
    return int(text)
