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

from ingestion.runs import copy_of
from lakehub import wiring
from lakehub.accounts.models import Team, Token, User
from lakehub.accounts.permissions import named, require, require_named, teams_where
from lakehub.catalog.access import require_on_dataset
from lakehub.catalog.changes import live_dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.suggest import did_you_mean
from quality.models import FinishedRun, PipelineHook
from quality.pipelines import finished, hooks
from quality.pipelines.authentication import SIGNATURE, TIMESTAMP, HookAuthentication
from quality.pipelines.serializers import (
    FinishedSerializer,
    HookSerializer,
    MadeHookSerializer,
    NewFinishedSerializer,
    NewHookSerializer,
)

ANSWERS = {201: FinishedSerializer, 200: FinishedSerializer}


class Finished(ListAPIView[FinishedRun]):
    """Runs of pipelines that have finished, newest first."""

    scopes: ClassVar = {"GET": "quality:read", "POST": "quality:run"}
    serializer_class = FinishedSerializer

    def get_queryset(self) -> QuerySet[FinishedRun]:
        found = FinishedRun.objects.select_related("copy__dataset", "copy__data_center").order_by("-told_at", "-pk")
        name = self.request.query_params.get("dataset", "")
        return found.filter(copy__dataset=live_dataset(name)) if name else found

    @extend_schema(parameters=[OpenApiParameter("dataset", str)])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(request=NewFinishedSerializer, responses=ANSWERS)
    def post(self, request: Request) -> Response:
        """A run has finished: the tests of what it wrote are due at once. 200 and no change where it was told before."""
        token = request.auth if isinstance(request.auth, Token) else None
        return _take_in(request, via=token.name if token else "", at_home=token.data_center if token else "")


class SignedFinished(APIView):
    """The same for tools that cannot hold a token: the body is signed with the secret of a hook."""

    authentication_classes = (HookAuthentication,)

    @extend_schema(
        request=NewFinishedSerializer,
        responses=ANSWERS,
        auth=[],
        parameters=[
            OpenApiParameter(TIMESTAMP, str, OpenApiParameter.HEADER, required=True, description="Seconds since 1970."),
            OpenApiParameter(
                SIGNATURE,
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
        return _take_in(request, via=hook.name, at_home="")


def _take_in(request: Request, *, via: str, at_home: str) -> Response:
    require_on_dataset(request, "rerun")
    asked = NewFinishedSerializer(data=request.data)
    asked.is_valid(raise_exception=True)
    said = asked.validated_data
    dataset = live_dataset(said["dataset"])
    require(request.user, "rerun", dataset.team)
    if isinstance(request.auth, PipelineHook) and not hooks.may_tell_of(request.auth, dataset):
        raise PermissionDenied(f"This hook tells of `{request.auth.dataset}` only.")
    copy = copy_of(dataset, said["dc"] or at_home)
    over = finished.written_range(said["from"], said["to"], dataset)
    told = finished.Told(said["run_id"], over, said["link"], via)
    run, is_new = finished.take_in(copy, told, actor=request.user.get_username(), now=wiring.clock.now())
    return Response(FinishedSerializer(run).data, status.HTTP_201_CREATED if is_new else status.HTTP_200_OK)


class Hooks(ListAPIView[PipelineHook]):
    """The live hooks of the teams whose pipelines you may speak for."""

    scopes: ClassVar = {"GET": "catalog:read", "POST": "catalog:write"}
    serializer_class = HookSerializer

    def get_queryset(self) -> QuerySet[PipelineHook]:
        limit = getattr(self.request.user, "limited_to", None)
        teams = Team.objects.filter(teams_where(self.request.user, "onboard"), **({"pk": limit.pk} if limit else {}))
        live = PipelineHook.objects.filter(revoked_at=None, team__in=teams.values("pk"))
        return live.select_related("team", "dataset", "created_by")

    @extend_schema(request=NewHookSerializer, responses={201: MadeHookSerializer})
    def post(self, request: Request) -> Response:
        """A new hook with its secret, which is shown this once."""
        if (name := named(request, "team")) or not named(request, "dataset"):
            require_named(request.user, "onboard", Team.objects.filter(name=name).first())
        else:
            require_on_dataset(request, "onboard")
        asked = NewHookSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said = asked.validated_data
        dataset = live_dataset(said["dataset"]) if said["dataset"] else None
        team = dataset.team if dataset and not said["team"] else _team(said["team"])
        require(request.user, "onboard", team)
        assert isinstance(request.user, User)
        hook = hooks.make(said["name"], team, dataset, created_by=request.user, now=wiring.clock.now())
        return Response(MadeHookSerializer(hook).data, status.HTTP_201_CREATED)


class OneHook(APIView):
    scopes: ClassVar = {"DELETE": "catalog:write"}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, key: str) -> Response:
        """Revokes it: what is signed with its secret is refused from now on."""
        hook = hooks.live_hook(key)
        require(request.user, "onboard", hook.team)
        hooks.revoke(hook, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


def _team(name: str) -> Team:
    if not name:
        raise Refused.because({"dataset": "Say whose pipelines report here: a `dataset`, or a `team`."})
    found = Team.objects.filter(name=name).first()
    if found is None:
        raise NotFound(f"There is no team `{name}`.{did_you_mean(name, Team.objects.values_list('name', flat=True))}")
    return found
