"""Pipelines that others run, over REST: a run has finished, and the hooks that report without a token."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ingestion.runs.job_runs import find_copy
from lakehub import wiring
from lakehub.accounts.models import Team, Token, User
from lakehub.accounts.permissions import field_of_body, require, require_in_named_team, teams_where
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.request_permissions import require_on_named_dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean
from quality.api.external_run_serializers import (
    CreatedPipelineHookSerializer,
    ExternalRunInputSerializer,
    ExternalRunSerializer,
    PipelineHookInputSerializer,
    PipelineHookSerializer,
)
from quality.api.pipeline_hook_auth import SIGNATURE_HEADER, TIMESTAMP_HEADER, HookAuthentication
from quality.models import ExternalRun, PipelineHook
from quality.planning import external_runs, pipeline_hooks

RESPONSES = {201: ExternalRunSerializer, 200: ExternalRunSerializer}


class ExternalRunList(ListAPIView[ExternalRun]):
    """Runs of pipelines that have finished, newest first."""

    scopes: ClassVar = {"GET": "quality:read", "POST": "quality:run"}
    serializer_class = ExternalRunSerializer

    def get_queryset(self) -> QuerySet[ExternalRun]:
        runs = ExternalRun.objects.select_related("copy__dataset", "copy__data_center").order_by("-reported_at", "-pk")
        name = self.request.query_params.get("dataset", "")
        return runs.filter(copy__dataset=live_dataset(name)) if name else runs

    @extend_schema(parameters=[OpenApiParameter("dataset", str)])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(request=ExternalRunInputSerializer, responses=RESPONSES)
    def post(self, request: Request) -> Response:
        """A run has finished: the tests of what it wrote are due at once. 200 and no change where it was told before."""
        token = request.auth if isinstance(request.auth, Token) else None
        return _record_run(request, via=token.name if token else "", at_home=token.data_center if token else "")


class SignedExternalRun(APIView):
    """The same for tools that cannot hold a token: the body is signed with the secret of a hook."""

    authentication_classes = (HookAuthentication,)

    @extend_schema(
        request=ExternalRunInputSerializer,
        responses=RESPONSES,
        auth=[],
        parameters=[
            OpenApiParameter(
                TIMESTAMP_HEADER, str, OpenApiParameter.HEADER, required=True, description="Seconds since 1970."
            ),
            OpenApiParameter(
                SIGNATURE_HEADER,
                str,
                OpenApiParameter.HEADER,
                required=True,
                description="`sha256=` and the HMAC-SHA256 of `<timestamp>.<body>` in hex.",
            ),
        ],
    )
    def post(self, request: Request, key: str) -> Response:
        """Refused where it was signed more than five minutes ago; told twice, nothing happens."""
        hook: Any = request.auth
        return _record_run(request, via=hook.name, at_home="")


def _record_run(request: Request, *, via: str, at_home: str) -> Response:
    require_on_named_dataset(request, "rerun")
    serializer = ExternalRunInputSerializer(data=request.data)
    serializer.is_valid(raise_exception=True)
    validated_data = serializer.validated_data
    dataset = live_dataset(validated_data["dataset"])
    require(request.user, "rerun", dataset.team)
    if isinstance(request.auth, PipelineHook) and not pipeline_hooks.may_report_on(request.auth, dataset):
        raise PermissionDenied(f"This hook tells of `{request.auth.dataset}` only.")
    copy = find_copy(dataset, validated_data["dc"] or at_home)
    over = external_runs.written_range(validated_data["from"], validated_data["to"], dataset)
    report = external_runs.ExternalRunReport(validated_data["run_id"], over, validated_data["link"], via)
    run, is_new = external_runs.record_external_run(
        copy, report, actor=request.user.get_username(), now=wiring.clock.now()
    )
    return Response(ExternalRunSerializer(run).data, status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)


class PipelineHookList(ListAPIView[PipelineHook]):
    """The live hooks of the teams whose pipelines you may speak for."""

    scopes: ClassVar = {"GET": "catalog:read", "POST": "catalog:write"}
    serializer_class = PipelineHookSerializer

    def get_queryset(self) -> QuerySet[PipelineHook]:
        limit = getattr(self.request.user, "token_team", None)
        teams = Team.objects.filter(teams_where(self.request.user, "onboard"), **({"pk": limit.pk} if limit else {}))
        live = PipelineHook.objects.filter(revoked_at=None, team__in=teams.values("pk"))
        return live.select_related("team", "dataset", "created_by")

    @extend_schema(request=PipelineHookInputSerializer, responses={201: CreatedPipelineHookSerializer})
    def post(self, request: Request) -> Response:
        """A new hook with its secret, which is shown this once."""
        if (name := field_of_body(request, "team")) or not field_of_body(request, "dataset"):
            require_in_named_team(request.user, "onboard", Team.objects.filter(name=name).first())
        else:
            require_on_named_dataset(request, "onboard")
        serializer = PipelineHookInputSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        validated_data = serializer.validated_data
        dataset = live_dataset(validated_data["dataset"]) if validated_data["dataset"] else None
        team = dataset.team if dataset and not validated_data["team"] else _find_team(validated_data["team"])
        require(request.user, "onboard", team)
        assert isinstance(request.user, User)
        hook = pipeline_hooks.create_hook(
            validated_data["name"], team, dataset, created_by=request.user, now=wiring.clock.now()
        )
        return Response(CreatedPipelineHookSerializer(hook).data, status.HTTP_201_CREATED)


class PipelineHookDetail(APIView):
    scopes: ClassVar = {"DELETE": "catalog:write"}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, key: str) -> Response:
        """Revokes it: what is signed with its secret is refused from now on."""
        hook = pipeline_hooks.live_hook(key)
        require(request.user, "onboard", hook.team)
        pipeline_hooks.revoke_hook(hook, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


def _find_team(name: str) -> Team:
    if not name:
        raise Refused.for_fields({"dataset": "Say whose pipelines report here: a `dataset`, or a `team`."})
    team = Team.objects.filter(name=name).first()
    if team is None:
        raise NotFound(f"There is no team `{name}`.{did_you_mean(name, Team.objects.values_list('name', flat=True))}")
    return team
