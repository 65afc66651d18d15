"""Replicated copies over REST."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from ingestion.runs.job_runs import find_copy
from ingestion.runs.replicas.setting import end_replication, replicate
from ingestion.runs.replicas.states import MAX_PENDING, replica_states
from lakehub import wiring
from lakehub.accounts.permissions import require
from lakehub.catalog.datasets.lookup import live_dataset


class ReplicaRequestSerializer(serializers.Serializer[Any]):
    replicated_from = serializers.CharField(max_length=63, help_text="The data center whose copy it is made from.")
    mib_per_s = serializers.IntegerField(
        min_value=1, max_value=1_000_000, required=False, allow_null=True, default=None, help_text="Null: any."
    )


class ReplicaSerializer(serializers.Serializer[Any]):
    copy = serializers.IntegerField(source="replica.copy_id", help_text="Its number, as in Prometheus.")
    data_center = serializers.CharField()
    replicated_from = serializers.CharField(help_text="The data center whose copy it is made from.")
    mib_per_s = serializers.IntegerField(allow_null=True)
    instant = serializers.CharField(help_text="The newest commit of the source that it is equal to; empty: none yet.")
    is_equal = serializers.BooleanField(help_text="The source has no newer commit that is known.")
    replicated_at = serializers.DateTimeField(allow_null=True)
    resync = serializers.CharField(help_text="Why its last run made it anew; empty where it did not.")
    error = serializers.CharField(help_text="Of its last run.")
    failed_run = serializers.IntegerField(
        allow_null=True, help_text="The number of its last run, where that has an error."
    )
    pending = serializers.IntegerField(
        allow_null=True,
        help_text=f"Commits of the source that it lacks, {MAX_PENDING + 1} for more than {MAX_PENDING}; null: it is not known any more which those are.",
    )
    waits_since = serializers.DateTimeField(allow_null=True, help_text="Since when the first of them waits.")
    copied_files = serializers.IntegerField(
        help_text="By the newest run that has copied any, each compared by checksum."
    )
    copied_bytes = serializers.IntegerField()
    copied_at = serializers.DateTimeField(allow_null=True)


class ReplicaList(APIView):
    scopes: ClassVar = {"GET": "catalog:read"}

    @extend_schema(operation_id="datasets_replicas", responses=ReplicaSerializer(many=True))
    def get(self, request: Request, name: str) -> Response:
        """The copies of a dataset that are replicated, and how far each is."""
        return Response(ReplicaSerializer(replica_states(live_dataset(name)), many=True).data)


class ReplicaDetail(APIView):
    scopes: ClassVar = {"PUT": "catalog:write", "DELETE": "catalog:write"}

    @extend_schema(request=ReplicaRequestSerializer, responses=ReplicaSerializer)
    def put(self, request: Request, name: str, data_center: str) -> Response:
        """The copy in this data center is made from that of another one from now on, and not from the dataset's source."""
        dataset = live_dataset(name)
        require(request.user, "onboard", dataset.team)
        body = ReplicaRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        copy, source = (find_copy(dataset, center) for center in (data_center, body.validated_data["replicated_from"]))
        limit, actor = body.validated_data["mib_per_s"], request.user.get_username()
        replicate(copy, source, mib_per_s=limit, actor=actor, now=wiring.clock.now())
        (state,) = (each for each in replica_states(dataset) if each.data_center == copy.data_center.name)
        return Response(ReplicaSerializer(state).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, data_center: str) -> Response:
        """The copy is fed again. For that it is bootstrapped anew, and reads as it is until then."""
        dataset = live_dataset(name)
        require(request.user, "onboard", dataset.team)
        copy = find_copy(dataset, data_center)
        end_replication(copy, actor=request.user.get_username(), now=wiring.clock.now())
        return Response(status=status.HTTP_204_NO_CONTENT)
