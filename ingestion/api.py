"""Ingestion over REST: the runs of a dataset, asking for one, its commits."""

from __future__ import annotations

from typing import ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ingestion import runs, waiting
from ingestion.models import Commit, JobKind, JobRun
from ingestion.serializers import AskSerializer, CommitSerializer, JobRunSerializer, RegardlessSerializer
from lakehub import wiring
from lakehub.accounts.permissions import require
from lakehub.catalog.changes import any_dataset, live_dataset

DESTROYS = (JobKind.DELETE, JobKind.DROP)


class Runs(ListAPIView[JobRun]):
    """The runs of a dataset, newest first."""

    scopes: ClassVar = {"GET": "ingestion:read", "POST": "ingestion:run"}
    serializer_class = JobRunSerializer

    def get_queryset(self) -> QuerySet[JobRun]:
        wanted = JobRun.objects.filter(copy__dataset=live_dataset(self.kwargs["name"]))
        return runs.described(wanted).order_by("-pk")

    @extend_schema(request=AskSerializer, responses={201: JobRunSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Asks for a job: it runs as soon as a worker is free. What removes rows needs an administrator of the team."""
        dataset = any_dataset(name)
        require(request.user, "rerun", dataset.team)
        asked = AskSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        values = asked.validated_data
        if values["kind"] in DESTROYS:
            require(request.user, "offboard", dataset.team)
        if values["kind"] != JobKind.DROP:
            dataset = live_dataset(name)
        copy = runs.copy_of(dataset, values["data_center"])
        actor = request.user.get_username()
        run = runs.ask(copy, values["kind"], values["params"], asked_by=actor, now=wiring.clock.now())
        return Response(JobRunSerializer(run).data, status.HTTP_201_CREATED)


class StartRun(APIView):
    """Starts a run that waits for an input, without asking the gate."""

    scopes: ClassVar = {"POST": "ingestion:run"}

    @extend_schema(request=RegardlessSerializer, responses=JobRunSerializer)
    def post(self, request: Request, name: str, number: int) -> Response:
        """The reason is kept with the run and in the audit log."""
        run, actor = _to_change(request, name, number), request.user.get_username()
        asked = RegardlessSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        waiting.start_regardless(run, why=asked.validated_data["why"], actor=actor, now=wiring.clock.now())
        return Response(JobRunSerializer(run).data)


class CancelRun(APIView):
    """Takes a run that has not begun out of the queue."""

    scopes: ClassVar = {"POST": "ingestion:run"}

    @extend_schema(request=None, responses=JobRunSerializer)
    def post(self, request: Request, name: str, number: int) -> Response:
        """One that runs is left to end."""
        run = _to_change(request, name, number)
        runs.cancel(run, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(JobRunSerializer(runs.find(run.copy.dataset, number)).data)


def _to_change(request: Request, name: str, number: int) -> JobRun:
    dataset = any_dataset(name)
    require(request.user, "rerun", dataset.team)
    return runs.find(dataset, number)


class Commits(ListAPIView[Commit]):
    """The commits of a dataset's copies, newest first: with the sum of each, where a job of ours made it."""

    scopes: ClassVar = {"GET": "ingestion:read"}
    serializer_class = CommitSerializer

    def get_queryset(self) -> QuerySet[Commit]:
        wanted = Commit.objects.filter(copy__dataset=live_dataset(self.kwargs["name"]))
        return wanted.select_related("copy__data_center").order_by("-completed_at", "-pk")
