"""What the actions on incidents are sent."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from incidents.models import Backfill, RootCause
from lakehub.http.instants import InstantField


class ActionSerializer(serializers.Serializer[dict[str, Any]]):
    """What every action may be sent: the `revision` that it was decided on."""

    revision = serializers.IntegerField(required=False, allow_null=True, default=None, min_value=0)


class AnnotateSerializer(ActionSerializer):
    eta = InstantField(required=False, allow_null=True)
    root_cause = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=40,
        help_text=f"One of {', '.join(RootCause.values)}; empty: not known.",
    )
    root_cause_text = serializers.CharField(required=False, allow_blank=True, max_length=5000)
    backfill = serializers.CharField(
        required=False, allow_blank=True, max_length=16, help_text=f"One of {', '.join(Backfill.values[1:])}."
    )
    backfill_run = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=2**63 - 1, help_text="The job run that repairs it."
    )
    text = serializers.CharField(required=False, default="", allow_blank=True, max_length=5000)


class CommentSerializer(serializers.Serializer[dict[str, str]]):
    text = serializers.CharField(max_length=5000)


class AssignSerializer(ActionSerializer):
    assignee = serializers.CharField(allow_blank=True, max_length=150, help_text="A user name; empty: nobody.")


class SnoozeSerializer(ActionSerializer):
    """What ends it, whichever comes first; at least one of them."""

    until = InstantField(required=False, allow_null=True, default=None)
    until_worse = serializers.BooleanField(
        required=False, default=False, help_text="More data fails, or it matters more."
    )
    failures = serializers.IntegerField(
        required=False, allow_null=True, default=None, min_value=1, max_value=1000, help_text="So many more runs fail."
    )


class ResolveSerializer(ActionSerializer):
    resolution = serializers.CharField(help_text="false_positive or accepted; for a report declared_fixed.")
    false_positive = serializers.CharField(required=False, default="", allow_blank=True)
    why = serializers.CharField(required=False, default="", allow_blank=True, max_length=5000)


class ReasonSerializer(ActionSerializer):
    why = serializers.CharField(required=False, default="", allow_blank=True, max_length=5000)


class BackfillSerializer(ActionSerializer):
    data_center = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=63, help_text="Empty: where most of it fails."
    )


class MergeSerializer(ActionSerializer):
    other = serializers.IntegerField(min_value=1, max_value=2**63 - 1, help_text="The incident whose spans come here.")


class SplitSerializer(ActionSerializer):
    units = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1), allow_empty=False, max_length=10_000
    )


class ReportSerializer(serializers.Serializer[dict[str, Any]]):
    """What a person says is wrong."""

    dataset = serializers.CharField(max_length=63)
    category = serializers.CharField(max_length=20)
    to = serializers.CharField(max_length=40)
    dc = serializers.CharField(max_length=63, required=False, default="", allow_blank=True)
    text = serializers.CharField(max_length=5000)
    occurred_at = InstantField(required=False, allow_null=True, default=None)

    def get_fields(self) -> dict[str, Any]:
        return {**super().get_fields(), "from": serializers.CharField(max_length=40)}
