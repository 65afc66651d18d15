"""The bodies of what the API says of pipelines."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from ingestion.domain.pipelines.reading import FILES
from ingestion.domain.pipelines.yaml_nodes import MAX_LENGTH
from ingestion.runs.modelled_tables.progress import MAX_PENDING, ROW_KINDS, CopyProgress, InputProgress


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


class InputProgressSerializer(serializers.Serializer[InputProgress]):
    """Of one input in the data center of the copy."""

    name = serializers.CharField(source="input.name", help_text="As the SELECT calls it.")
    dataset = serializers.CharField(source="input.dataset")
    is_followed = serializers.BooleanField(source="input.is_followed")
    is_there = serializers.SerializerMethodField(help_text="It has a copy in this data center.")
    pending = serializers.IntegerField(
        allow_null=True,
        help_text=f"Commits that were begun after the newest that was read, {MAX_PENDING + 1} for more than {MAX_PENDING}; null: none was read yet.",
    )
    waits_since = serializers.DateTimeField(allow_null=True, help_text="When the first of them was completed.")
    processed = serializers.IntegerField(help_text="Commits of the last 24 hours that were read.")
    read_upto = serializers.DateTimeField(allow_null=True, help_text="When the newest that was read was completed.")

    def get_is_there(self, progress: InputProgress) -> bool:
        return progress.copy is not None


class NewestRunSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(source="pk")
    kind = serializers.CharField()
    state = serializers.CharField()
    error = serializers.CharField()


class CopyProgressSerializer(serializers.Serializer[CopyProgress]):
    """How far the pipeline of a copy is. `now` in the context."""

    copy = serializers.IntegerField(source="copy.pk", help_text="Its number, as Prometheus has it.")
    data_center = serializers.CharField(source="copy.data_center.name")
    has_table = serializers.BooleanField()
    lag_s = serializers.SerializerMethodField(
        help_text="For how long the first commit waits of an input whose changes are followed; null: it is not known."
    )
    pending = serializers.IntegerField(help_text="Of all inputs whose changes are followed.")
    rows = serializers.DictField(
        child=serializers.IntegerField(), help_text=f"Of the last 24 hours: {', '.join(ROW_KINDS)}."
    )
    newest_run = NewestRunSerializer(allow_null=True)
    inputs = InputProgressSerializer(many=True)

    def get_lag_s(self, progress: CopyProgress) -> float | None:
        lag = progress.lag(now=self.context["now"])
        return None if lag is None else lag.total_seconds()
