"""What the API says of finished pipelines, and of the hooks that they report to."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers

from quality.models import ExternalRun, PipelineHook

HOOK_ADDRESS = "/api/v1/pipelines/hooks/{key}/finished"


class ExternalRunInputSerializer(serializers.Serializer[dict[str, Any]]):
    """A run that has finished, and what it wrote. Without partitions `from` and `to` may be left out."""

    dataset = serializers.CharField(max_length=63)
    dc = serializers.CharField(max_length=63, required=False, default="", allow_blank=True)
    to = serializers.CharField(max_length=40, required=False, default="", allow_blank=True, help_text="Not included.")
    run_id = serializers.CharField(max_length=200, help_text="Names the run: told again, nothing happens.")
    link = serializers.URLField(max_length=500, required=False, default="", allow_blank=True)

    def get_fields(self) -> dict[str, Any]:
        # `from` is a word of Python, so it cannot be an attribute.
        begin = serializers.CharField(max_length=40, required=False, default="", allow_blank=True)
        return {**super().get_fields(), "from": begin}

    def validate_link(self, link: str) -> str:
        if link and not link.startswith(("https://", "http://")):
            raise serializers.ValidationError("A link begins with https:// or http://.")
        return link


class ExternalRunSerializer(serializers.ModelSerializer[ExternalRun]):
    dataset = serializers.CharField(source="copy.dataset.name", read_only=True)
    data_center = serializers.CharField(source="copy.data_center.name", read_only=True)

    link = serializers.CharField(help_text="Empty where none was given.")
    told_by = serializers.CharField(source="reported_by", read_only=True)
    told_at = serializers.DateTimeField(source="reported_at", read_only=True)
    made_due = serializers.IntegerField(source="units_made_due", read_only=True)

    class Meta:
        model = ExternalRun
        fields: ClassVar = [
            "run_id",
            "dataset",
            "data_center",
            "start",
            "end",
            "link",
            "told_by",
            "via",
            "told_at",
            "made_due",
        ]
        read_only_fields = fields


class PipelineHookInputSerializer(serializers.Serializer[dict[str, Any]]):
    """A hook of a dataset, or with `team` alone of all datasets of a team."""

    name = serializers.CharField(max_length=100)
    dataset = serializers.CharField(max_length=63, required=False, default="", allow_blank=True)
    team = serializers.CharField(max_length=63, required=False, default="", allow_blank=True)


class PipelineHookSerializer(serializers.ModelSerializer[PipelineHook]):
    team = serializers.CharField(source="team.name", read_only=True)
    dataset = serializers.CharField(source="dataset.name", read_only=True, allow_null=True, default=None)
    created_by = serializers.CharField(source="created_by.username", read_only=True)
    address = serializers.SerializerMethodField(help_text="Where signed reports are sent.")

    class Meta:
        model = PipelineHook
        fields: ClassVar = ["key", "name", "team", "dataset", "address", "created_by", "created_at", "last_used_at"]
        read_only_fields = fields

    def get_address(self, hook: PipelineHook) -> str:
        return HOOK_ADDRESS.format(key=hook.key)


class CreatedPipelineHookSerializer(PipelineHookSerializer):
    """With the secret, this once."""

    class Meta(PipelineHookSerializer.Meta):
        fields: ClassVar = [*PipelineHookSerializer.Meta.fields, "secret"]
        read_only_fields = fields
