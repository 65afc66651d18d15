"""Ingestion over REST: the runs of a dataset, asking for one, its commits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ingestion.lake import error_rows, readers
from ingestion.models import Commit, JobKind, JobRun, ReaderPosition
from ingestion.runs import blocked_inputs, failed_runs, job_runs, rebuilds
from ingestion.runs.job_specs import error_table_uri
from ingestion.runs.replays.row_choice import RowChoice, request_replay
from ingestion.runs.source_use.kept_loads import raw_chunk_places
from ingestion.serializers import (
    CommitSerializer,
    ErrorCountsSerializer,
    ErrorFilterSerializer,
    ErrorRowPageSerializer,
    ErrorRowSerializer,
    ErrorRowsRequestSerializer,
    JobRunRequestSerializer,
    JobRunSerializer,
    PauseRequestSerializer,
    RawChunkPlaceSerializer,
    ReaderPositionSerializer,
    ReaderSerializer,
    RebuildSerializer,
    ReplayRequestSerializer,
    RequestedDropsSerializer,
    StartRegardlessSerializer,
)
from lakehub import wiring
from lakehub.accounts.permissions import require
from lakehub.catalog.datasets import pausing
from lakehub.catalog.datasets.lookup import any_dataset, live_dataset
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.catalog.onboarding.rebuild import accept_fewer_rows, find_rebuild
from lakehub.catalog.serializers.datasets import DatasetSerializer
from lakehub.http.openapi import BUSY
from lakehub.kernel.errors import NotFound


class JobRunList(ListAPIView[JobRun]):
    """The runs of a dataset, newest first."""

    scopes: ClassVar = {"GET": "ingestion:read", "POST": "ingestion:run"}
    serializer_class = JobRunSerializer

    def get_queryset(self) -> QuerySet[JobRun]:
        runs = JobRun.objects.filter(copy__dataset=live_dataset(self.kwargs["name"]))
        return job_runs.with_details(runs).order_by("-pk")

    @extend_schema(request=JobRunRequestSerializer, responses={201: JobRunSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Asks for a job: it runs as soon as a worker is free. What removes rows needs an administrator of the team.

        A job on a copy that has no table yet is refused. Where its bootstrap was given up, an incremental or a backfill becomes
        the bootstrap that loads all of it: `kind` of the answer says so.
        """
        dataset = any_dataset(name)
        require(request.user, "rerun", dataset.team)
        serializer = JobRunRequestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        if values["kind"] in failed_runs.DESTRUCTIVE_KINDS:
            require(request.user, "offboard", dataset.team)
        if values["kind"] != JobKind.DROP:
            dataset = live_dataset(name)
        copy = job_runs.find_copy(dataset, values["data_center"])
        actor = request.user.get_username()
        run = job_runs.request_run(copy, values["kind"], values["params"], asked_by=actor, now=wiring.clock.now())
        return Response(_shown_run(run, request), status.HTTP_201_CREATED)


class JobRunDetail(APIView):
    scopes: ClassVar = {"GET": "ingestion:read"}

    @extend_schema(operation_id="datasets_runs_retrieve", responses=JobRunSerializer)
    def get(self, request: Request, name: str, number: int) -> Response:
        """One run of a dataset: its state, how far it is, and why it waits or has failed."""
        return Response(_shown_run(job_runs.find_run(live_dataset(name), number), request))


class RawChunkList(APIView):
    scopes: ClassVar = {"GET": "ingestion:read"}

    @extend_schema(operation_id="datasets_raw_chunks", responses=RawChunkPlaceSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """By copy, where the raw chunks of its loads lie and until when they are kept. None where the source is not one whose chunks land."""
        places = raw_chunk_places(live_dataset(name), ahead=wiring.clock.ahead())
        return Response(RawChunkPlaceSerializer(places, many=True).data)


class StartRun(APIView):
    """Starts a run that waits for an input, without asking the gate."""

    scopes: ClassVar = {"POST": "ingestion:run"}

    @extend_schema(request=StartRegardlessSerializer, responses=JobRunSerializer)
    def post(self, request: Request, name: str, number: int) -> Response:
        """The reason is kept with the run and in the audit log."""
        run, actor = _run_to_change(request, name, number), request.user.get_username()
        serializer = StartRegardlessSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        blocked_inputs.start_regardless(run, why=serializer.validated_data["why"], actor=actor, now=wiring.clock.now())
        return Response(_shown_run(run, request))


class CancelRun(APIView):
    """Takes a run that has not begun out of the queue."""

    scopes: ClassVar = {"POST": "ingestion:run"}

    @extend_schema(request=None, responses=JobRunSerializer)
    def post(self, request: Request, name: str, number: int) -> Response:
        """One that runs is left to end."""
        run = _run_to_change(request, name, number)
        job_runs.cancel_run(run, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(_shown_run(job_runs.find_run(run.copy.dataset, number), request))


class RetryRun(APIView):
    """Asks once more for a run that failed."""

    scopes: ClassVar = {"POST": "ingestion:run"}

    @extend_schema(request=None, responses={201: JobRunSerializer})
    def post(self, request: Request, name: str, number: int) -> Response:
        """A run of its own, of the same kind on the same copy. What removes rows needs an administrator of the team, a replay an owner or an administrator."""
        run = _run_to_change(request, name, number)
        require(request.user, failed_runs.right_to_retry(run.kind), run.copy.dataset.team)
        retried = failed_runs.retry_run(run, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(_shown_run(retried, request), status.HTTP_201_CREATED)


class PauseIngestion(APIView):
    scopes: ClassVar = {"POST": "ingestion:run"}

    @extend_schema(request=PauseRequestSerializer, responses=DatasetSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Nothing reads the source of the dataset until it is resumed. A load that is at work stops after the commit that it is in, and keeps its position."""
        dataset = live_dataset(name)
        require(request.user, "rerun", dataset.team)
        serializer = PauseRequestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        why, actor = serializer.validated_data["why"], request.user.get_username()
        pausing.pause_ingestion(dataset, why=why, actor=actor, now=wiring.clock.now())
        return Response(DatasetSerializer(dataset).data)


class ResumeIngestion(APIView):
    scopes: ClassVar = {"POST": "ingestion:run"}

    @extend_schema(request=None, responses=DatasetSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Jobs go on where they were."""
        dataset = live_dataset(name)
        require(request.user, "rerun", dataset.team)
        pausing.resume_ingestion(dataset, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(DatasetSerializer(dataset).data)


def _shown_run(run: JobRun, request: Request) -> dict[str, Any]:
    return JobRunSerializer(run, context={"request": request}).data


def _run_to_change(request: Request, name: str, number: int) -> JobRun:
    dataset = any_dataset(name)
    require(request.user, "rerun", dataset.team)
    return job_runs.find_run(dataset, number)


class RebuildDetail(APIView):
    scopes: ClassVar = {"GET": "ingestion:read", "DELETE": "catalog:write"}

    @extend_schema(responses=RebuildSerializer)
    def get(self, request: Request, name: str) -> Response:
        """The newest rebuild of the dataset, which another partition started: how far it is, and which tables were left."""
        return Response(RebuildSerializer(_rebuild_progress(live_dataset(name))).data)

    @extend_schema(responses=RebuildSerializer)
    def delete(self, request: Request, name: str) -> Response:
        """Cancels the one that is under way: the present tables stay, what was built is dropped."""
        dataset = live_dataset(name)
        require(request.user, "onboard", dataset.team)
        rebuilds.cancel(find_rebuild(dataset), actor=request.user.get_username(), now=wiring.clock.now())
        return Response(RebuildSerializer(_rebuild_progress(dataset)).data)


class RebuildAcceptance(APIView):
    scopes: ClassVar = {"POST": "catalog:write"}

    @extend_schema(request=None, responses=RebuildSerializer)
    def post(self, request: Request, name: str) -> Response:
        """Lets it switch though the new tables hold fewer rows. Needs an administrator of the team."""
        dataset = live_dataset(name)
        require(request.user, "offboard", dataset.team)
        accept_fewer_rows(find_rebuild(dataset), actor=request.user.get_username(), now=wiring.clock.now())
        return Response(RebuildSerializer(_rebuild_progress(dataset)).data)


class LeftTableDrop(APIView):
    scopes: ClassVar = {"POST": "ingestion:run"}

    @extend_schema(request=None, responses={202: RequestedDropsSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Removes what removed copies left in the lake. Needs an administrator of the team."""
        dataset = any_dataset(name)
        require(request.user, "offboard", dataset.team)
        runs = rebuilds.drop_left_tables(dataset, actor=request.user.get_username(), now=wiring.clock.now())
        return Response({"runs": JobRunSerializer(runs, many=True).data}, status.HTTP_202_ACCEPTED)


def _rebuild_progress(dataset: Dataset) -> rebuilds.RebuildProgress:
    progress = rebuilds.rebuild_progress(dataset)
    if progress is None:
        raise NotFound(f"`{dataset.name}` was never rebuilt: another partition starts a rebuild.")
    return progress


class CommitList(ListAPIView[Commit]):
    """The commits of a dataset's copies, newest first: with the sum of each, where a job of ours made it."""

    scopes: ClassVar = {"GET": "ingestion:read"}
    serializer_class = CommitSerializer

    def get_queryset(self) -> QuerySet[Commit]:
        commits = Commit.objects.filter(copy__dataset=live_dataset(self.kwargs["name"]))
        return commits.select_related("copy__data_center").order_by("-completed_at", "-pk")


class ReaderList(ListAPIView[ReaderPosition]):
    """Who reads the increments of a dataset's copies, and how far they are: who is furthest behind comes first."""

    scopes: ClassVar = {"GET": "ingestion:read"}
    serializer_class = ReaderSerializer

    def get_queryset(self) -> QuerySet[ReaderPosition]:
        positions = ReaderPosition.objects.filter(copy__dataset=live_dataset(self.kwargs["name"]))
        return positions.select_related("copy__data_center").order_by("position", "pk")


class ReaderDetail(APIView):
    """How far a reader is. While its position counts, the lake keeps what it has not read, within the operator's bound."""

    scopes: ClassVar = {"PUT": "ingestion:run", "DELETE": "ingestion:run"}

    @extend_schema(request=ReaderPositionSerializer, responses=ReaderSerializer)
    def put(self, request: Request, name: str, reader: str) -> Response:
        """Says how far it is; it need not be known before."""
        dataset = live_dataset(name)
        require(request.user, "rerun", dataset.team)
        serializer = ReaderPositionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values, actor = serializer.validated_data, request.user.get_username()
        copy, lasts = job_runs.find_copy(dataset, values["data_center"]), timedelta(seconds=values["lasts_s"])
        now = wiring.clock.now()
        position = readers.note_position(copy, reader, values["position"], actor=actor, now=now, lasts=lasts)
        return Response(ReaderSerializer(position).data)

    @extend_schema(
        parameters=[OpenApiParameter("data_center", description="may be left out where the dataset has one copy")],
        responses={204: None},
    )
    def delete(self, request: Request, name: str, reader: str) -> Response:
        """It holds nothing any more."""
        dataset = live_dataset(name)
        require(request.user, "rerun", dataset.team)
        copy = job_runs.find_copy(dataset, request.query_params.get("data_center", ""))
        readers.forget_reader(copy, reader, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class ErrorRowList(APIView):
    scopes: ClassVar = {"GET": "ingestion:read"}

    @extend_schema(
        operation_id="datasets_errors_list",
        parameters=[ErrorRowsRequestSerializer],
        responses={200: ErrorRowPageSerializer, 503: BUSY},
    )
    def get(self, request: Request, name: str) -> Response:
        """The rows of a copy's error table, newest first, in pages by cursor. For members of the owning team."""
        copy, values = _error_table_request(request, name, ErrorRowsRequestSerializer)
        after = error_rows.ErrorCursor.parse(values["cursor"]) if values["cursor"] else None
        filters = _error_filters(copy.dataset, values)
        page = error_rows.read_error_page(error_table_uri(copy), filters, after=after, limit=values["limit"])
        body = {"data_center": copy.data_center.name, "rows": page.rows, "next_cursor": page.next_cursor}
        return Response(ErrorRowPageSerializer(body).data)


class ErrorCountList(APIView):
    scopes: ClassVar = {"GET": "ingestion:read"}

    @extend_schema(parameters=[ErrorFilterSerializer], responses={200: ErrorCountsSerializer, 503: BUSY})
    def get(self, request: Request, name: str) -> Response:
        """How many rows of a copy's error table each column rejects, by kind of reason. For members of the owning team."""
        copy, values = _error_table_request(request, name, ErrorFilterSerializer)
        counts = error_rows.count_errors(error_table_uri(copy), _error_filters(copy.dataset, values))
        body = {
            "data_center": copy.data_center.name,
            "rows": counts.rows,
            "group_count": counts.group_count,
            "groups": counts.groups,
        }
        return Response(ErrorCountsSerializer(body).data)


class ErrorReplay(APIView):
    scopes: ClassVar = {"POST": "ingestion:run"}

    @extend_schema(request=ReplayRequestSerializer, responses={201: JobRunSerializer, 503: BUSY})
    def post(self, request: Request, name: str) -> Response:
        """Tries rejected rows again, as they are or with other values. Needs an owner or an administrator of the team.

        A run of the kind `replay`: rows that fit are written, unless the table holds newer ones, and are resolved; the others stay with
        the new reason. At most 200 `rows`, or 10,000 of one kind, the newest first.
        """
        dataset = live_dataset(name)
        require(request.user, "onboard", dataset.team)
        serializer = ReplayRequestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        copy = job_runs.find_copy(dataset, values.pop("data_center"))
        actor = request.user.get_username()
        run = request_replay(copy, RowChoice.of(**values), asked_by=actor, now=wiring.clock.now())
        return Response(_shown_run(run, request), status.HTTP_201_CREATED)


class ErrorRowDetail(APIView):
    scopes: ClassVar = {"GET": "ingestion:read"}

    @extend_schema(parameters=[OpenApiParameter("data_center", str)], responses={200: ErrorRowSerializer, 503: BUSY})
    def get(self, request: Request, name: str, key: str) -> Response:
        """One row of the error table with all of its raw text, up to 5,000,000 characters. For members of the owning team."""
        copy, _ = _error_table_request(request, name, ErrorFilterSerializer)
        return Response(ErrorRowSerializer(error_rows.read_error_row(error_table_uri(copy), key)).data)


def _error_table_request(
    request: Request, name: str, serializer_class: type[ErrorFilterSerializer]
) -> tuple[DatasetCopy, dict[str, Any]]:
    """The copy whose error table is asked for: its rows are rows of data."""
    dataset = any_dataset(name)
    require(request.user, "see rows", dataset.team)
    serializer = serializer_class(data=request.query_params)
    serializer.is_valid(raise_exception=True)
    values = serializer.validated_data
    return job_runs.find_copy(dataset, values["data_center"]), values


def _error_filters(dataset: Dataset, values: dict[str, Any]) -> error_rows.ErrorFilters:
    run = str(job_runs.find_run(dataset, values["run"]).key) if values["run"] else ""
    state = error_rows.ErrorState(values.get("state", error_rows.ErrorState.OPEN))
    return error_rows.ErrorFilters(values["column"], values["reason"], run, state)
