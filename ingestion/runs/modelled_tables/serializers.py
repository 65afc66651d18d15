"""The bodies of what the API says of pipelines."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from ingestion.domain.pipelines.reading import FILES
from ingestion.domain.pipelines.yaml_nodes import MAX_LENGTH


class PipelineFilesSerializer(serializers.Serializer[Any]):
    files = serializers.DictField(
        child=serializers.CharField(max_length=MAX_LENGTH, trim_whitespace=False),
        help_text=f"The texts of {', '.join(FILES)}, each by its name.",
    )


class RegistrationSerializer(serializers.Serializer[Any]):
    dataset = serializers.CharField(source="dataset.name")
    is_new = serializers.BooleanField(help_text="It was not registered before.")
    rebuilds = serializers.IntegerField(help_text="How many of its tables are made anew, as rows may be others.")


class PipelineInputSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="As its SELECT calls it.")
    dataset = serializers.CharField()
    is_followed = serializers.BooleanField(help_text="Each change of it leads to the rows that it reaches.")


class PipelineSerializer(serializers.Serializer[Any]):
    """A pipeline that is registered."""

    files = serializers.DictField(child=serializers.CharField())
    changed_at = serializers.DateTimeField()
    changed_by = serializers.CharField()
    inputs = PipelineInputSerializer(many=True)


class CheckedPipelineSerializer(serializers.Serializer[Any]):
    """What would be registered."""

    dataset = serializers.CharField(source="pipeline.name")
    record_key = serializers.ListField(source="pipeline.record_key", child=serializers.CharField())
    columns = serializers.DictField(source="pipeline.columns.types", child=serializers.CharField())
    inputs = PipelineInputSerializer(source="pipeline.inputs", many=True)
    data_centers = serializers.ListField(child=serializers.CharField(), help_text="In which it gets a copy.")
