"""What the actions on incidents are sent."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class ActionSerializer(serializers.Serializer[dict[str, Any]]):
    """What every action may be sent: the `revision` that it was decided on."""

    revision = serializers.IntegerField(required=False, allow_null=True, default=None, min_value=0)


class AnnotateSerializer(ActionSerializer):
    eta = serializers.DateTimeField(required=False, allow_null=True)
    root_cause = serializers.CharField(required=False, allow_blank=True, max_length=40)
    root_cause_text = serializers.CharField(required=False, allow_blank=True, max_length=5000)
    backfill = serializers.CharField(required=False, allow_blank=True, max_length=16)
    text = serializers.CharField(required=False, default="", allow_blank=True, max_length=5000)


class CommentSerializer(serializers.Serializer[dict[str, str]]):
    text = serializers.CharField(max_length=5000)


class AssignSerializer(ActionSerializer):
    assignee = serializers.CharField(allow_blank=True, max_length=150, help_text="A user name; empty: nobody.")


class SnoozeSerializer(ActionSerializer):
    until = serializers.DateTimeField(allow_null=True, help_text="null: no longer.")


class ResolveSerializer(ActionSerializer):
    resolution = serializers.CharField(help_text="false_positive or accepted; for a report declared_fixed.")
    false_positive = serializers.CharField(required=False, default="", allow_blank=True)
    why = serializers.CharField(required=False, default="", allow_blank=True, max_length=5000)


class ReasonSerializer(ActionSerializer):
    why = serializers.CharField(required=False, default="", allow_blank=True, max_length=5000)


class MergeSerializer(serializers.Serializer[dict[str, int]]):
    other = serializers.IntegerField(help_text="The incident whose spans come here.")


class SplitSerializer(serializers.Serializer[dict[str, Any]]):
    units = serializers.ListField(child=serializers.IntegerField(), allow_empty=False)


class ReportSerializer(serializers.Serializer[dict[str, Any]]):
    """What a person says is wrong."""

    dataset = serializers.CharField(max_length=63)
    category = serializers.CharField(max_length=20)
    to = serializers.CharField(max_length=40)
    dc = serializers.CharField(max_length=63, required=False, default="", allow_blank=True)
    text = serializers.CharField(max_length=5000)
    occurred_at = serializers.DateTimeField(required=False, allow_null=True, default=None)

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "from": serializers.CharField(max_length=40)}
