"""What the REST API says of policies and overrides."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from incidents.models import GateOverride, GatePolicy, PolicyPreset
from lakehub.catalog.models import TIERS


class PolicySerializer(serializers.ModelSerializer[GatePolicy]):
    blocks_on = serializers.SerializerMethodField(help_text="What blocks, whether it is a preset or custom.")

    class Meta:
        model = GatePolicy
        fields = ("consumer", "tier", "preset", "blocks", "blocks_on", "shadow")

    def get_blocks_on(self, row: GatePolicy) -> list[str]:
        return sorted(row.blocking_verdicts)


class SetPolicySerializer(serializers.Serializer[dict[str, Any]]):
    """`tier` null: every tier that has no policy of its own. `blocks` only of a custom one."""

    consumer = serializers.CharField(max_length=63)
    tier = serializers.ChoiceField(choices=list(TIERS), allow_null=True, required=False, default=None)
    preset = serializers.ChoiceField(choices=PolicyPreset.choices)
    blocks = serializers.ListField(
        child=serializers.CharField(max_length=60), required=False, default=list, max_length=50
    )
    shadow = serializers.BooleanField(required=False, default=False)


class OverrideSerializer(serializers.ModelSerializer[GateOverride]):
    dataset = serializers.CharField(source="dataset.name")
    dc = serializers.SerializerMethodField(help_text="Empty: every data center.")
    in_force = serializers.SerializerMethodField()

    class Meta:
        model = GateOverride
        fields = (
            "id", "dataset", "dc", "consumer", "start", "end", "reason", "created_by", "created_at", "expires_at",
            "ended_at", "ended_by", "in_force",
        )  # fmt: skip

    def get_dc(self, row: GateOverride) -> str:
        return row.copy.data_center.name if row.copy else ""

    def get_in_force(self, row: GateOverride) -> bool:
        return row.ended_at is None and row.expires_at > self.context["now"]


class NewOverrideSerializer(serializers.Serializer[dict[str, Any]]):
    """`consumer` empty: everybody; `dc` empty: every copy."""

    dataset = serializers.CharField(max_length=63)
    to = serializers.CharField(max_length=40)
    dc = serializers.CharField(max_length=63, required=False, default="", allow_blank=True)
    consumer = serializers.CharField(max_length=63, required=False, default="", allow_blank=True)
    reason = serializers.CharField(max_length=1000)
    until = serializers.CharField(max_length=40, help_text="When it ends by itself: a time with its offset.")

    def get_fields(self) -> dict[str, Any]:
        # `from` is a word of Python, so it cannot be an attribute.
        return {**super().get_fields(), "from": serializers.CharField(max_length=40)}
