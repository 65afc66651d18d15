"""What the API shows of ingestion."""

from __future__ import annotations

from typing import ClassVar

from rest_framework import serializers

from ingestion.models import Commit, JobKind, JobRun


class JobRunSerializer(serializers.ModelSerializer[JobRun]):
    dataset = serializers.CharField(source="copy.dataset.name", read_only=True)
    data_center = serializers.CharField(source="copy.data_center.name", read_only=True)

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
            "report",
            "error",
        ]
        read_only_fields = fields


class AskSerializer(serializers.Serializer[JobRun]):
    """`params`: what the kind needs, such as {"partitions": ["2026-11-16"]} for a backfill."""

    kind = serializers.ChoiceField(JobKind.choices)
    data_center = serializers.CharField(default="", allow_blank=True)
    params = serializers.DictField(default=dict)


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
