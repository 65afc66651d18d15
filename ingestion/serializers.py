"""What the API shows of ingestion."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers

from ingestion.models import BlockedInput, Commit, JobKind, JobRun
from lakehub.catalog.models import DatasetCopy


class BlockedInputSerializer(serializers.ModelSerializer[BlockedInput]):
    """An input that a run waits for: what the gate says of the range that it reads."""

    dataset = serializers.CharField(source="copy.dataset.name", read_only=True)
    data_center = serializers.CharField(source="copy.data_center.name", read_only=True)
    incidents = serializers.ListField(child=serializers.IntegerField(), read_only=True)

    class Meta:
        model = BlockedInput
        fields: ClassVar = ["dataset", "data_center", "start", "end", "verdict", "reason", "incidents", "retry_at"]
        read_only_fields = fields


class JobRunSerializer(serializers.ModelSerializer[JobRun]):
    dataset = serializers.CharField(source="copy.dataset.name", read_only=True)
    data_center = serializers.CharField(source="copy.data_center.name", read_only=True)
    blocked_by = BlockedInputSerializer(many=True, read_only=True)

    class Meta:
        model = JobRun
        fields: ClassVar = [
            "id",
            "key",
            "dataset",
            "data_center",
            "kind",
            "params",
            "asked_by",
            "state",
            "due_at",
            "attempt",
            "started_at",
            "ended_at",
            "progress",
            "progress_at",
            "report",
            "error",
            "waits_since",
            "blocked_by",
            "regardless_by",
            "regardless_why",
        ]
        read_only_fields = fields


class JobRunRequestSerializer(serializers.Serializer[JobRun]):
    """`params`: what the kind needs, such as {"partitions": ["2026-11-16"]} for a backfill."""

    kind = serializers.ChoiceField(JobKind.choices)
    data_center = serializers.CharField(default="", allow_blank=True)
    params = serializers.DictField(default=dict)


class StartRegardlessSerializer(serializers.Serializer[JobRun]):
    """Why a run may read what the gate blocks."""

    why = serializers.CharField(max_length=2000)


class BuiltCopySerializer(serializers.Serializer[Any]):
    """A table that is being built. `state`: failed, loading, behind (what came meanwhile is read) or whole."""

    data_center = serializers.CharField(source="copy.data_center.name")
    uri = serializers.CharField(source="copy.uri")
    state = serializers.CharField()
    run = JobRunSerializer(allow_null=True)


class LeftTableSerializer(serializers.Serializer[DatasetCopy]):
    """A table that a removed copy left in the lake."""

    data_center = serializers.CharField(source="data_center.name")
    uri = serializers.CharField()
    removed_at = serializers.DateTimeField()


class RebuildSerializer(serializers.Serializer[Any]):
    """The newest rebuild. `problem`: why it does not switch: somebody accepts that, or cancels it."""

    state = serializers.CharField(source="rebuild.state")
    partition_column = serializers.CharField(source="rebuild.partition_column")
    grain = serializers.CharField(source="rebuild.grain")
    partition_form = serializers.CharField(source="rebuild.partition_form")
    partition_tz = serializers.CharField(source="rebuild.partition_tz")
    asked_by = serializers.CharField(source="rebuild.asked_by")
    asked_at = serializers.DateTimeField(source="rebuild.asked_at")
    ended_by = serializers.CharField(source="rebuild.ended_by")
    ended_at = serializers.DateTimeField(source="rebuild.ended_at", allow_null=True)
    problem = serializers.CharField(source="rebuild.problem")
    accepted_by = serializers.CharField(source="rebuild.accepted_by")
    copies = BuiltCopySerializer(many=True)
    left_tables = LeftTableSerializer(many=True)


class RequestedDropsSerializer(serializers.Serializer[Any]):
    runs = JobRunSerializer(many=True)


class CommitSerializer(serializers.ModelSerializer[Commit]):
    data_center = serializers.CharField(source="copy.data_center.name", read_only=True)

    class Meta:
        model = Commit
        fields: ClassVar = [
            "data_center",
            "instant",
            "completed_at",
            "operation",
            "read",
            "applied",
            "superseded",
            "redelivered",
            "errors",
            "inserts",
            "updates",
            "deletes",
            "source_committed_upto",
        ]
        read_only_fields = fields
