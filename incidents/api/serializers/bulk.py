"""Actions on many incidents: what they are sent, and what is answered for each."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from incidents.lifecycle.bulk.apply import ACTION_TYPES, MAX_INCIDENTS, BulkReport, SkippedIncident
from lakehub.http.instants import InstantField


class TogetherSerializer(serializers.Serializer[dict[str, Any]]):
    """One action, the incidents, and what the action needs to know."""

    action = serializers.CharField(max_length=20, help_text=f"One of {', '.join(ACTION_TYPES)}.")
    incidents = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1), allow_empty=False, max_length=MAX_INCIDENTS
    )
    until = InstantField(
        required=False, allow_null=True, default=None, help_text="Of a snooze, as the next two: at least one."
    )
    until_worse = serializers.BooleanField(required=False, default=False)
    failures = serializers.IntegerField(required=False, allow_null=True, default=None, min_value=1, max_value=1000)
    assignee = serializers.CharField(required=False, default="", allow_blank=True, max_length=150)
    resolution = serializers.CharField(required=False, default="", allow_blank=True, max_length=20)
    false_positive = serializers.CharField(required=False, default="", allow_blank=True, max_length=20)
    why = serializers.CharField(required=False, default="", allow_blank=True, max_length=5000)


class KeptSerializer(serializers.Serializer[SkippedIncident]):
    incident = serializers.IntegerField()
    code = serializers.CharField(help_text="forbidden, refused, conflict or not_found.")
    why = serializers.CharField()


class BulkReportSerializer(serializers.Serializer[BulkReport]):
    """`bulk` takes it back until `undo_until`; null where there is nothing to take back."""

    action = serializers.CharField()
    bulk = serializers.IntegerField(source="bulk.pk", default=None, allow_null=True)
    undo_until = serializers.DateTimeField(allow_null=True)
    done = serializers.ListField(child=serializers.IntegerField())
    kept = KeptSerializer(many=True, source="skipped")
