"""Datasets, and the daily looks at their lineage, in JSON."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from lakehub.catalog.datasets.feed_options import effective_options_of, takes_feed_options
from lakehub.catalog.datasets.hidden_columns import (
    HASHED,
    HIDING_FIELDS,
    LEFT_OUT,
    MASKED,
    hidden_names,
)
from lakehub.catalog.models import Dataset, Feed, LineageDay
from lakehub.catalog.serializers.fields import HASHED_TEXT, LEFT_OUT_TEXT, MASKED_TEXT, FeedOptionsField, SecondsField


class CopySerializer(serializers.Serializer[Any]):
    data_center = serializers.CharField(source="data_center.name")
    uri = serializers.CharField()
    connection = serializers.CharField(source="source_name")
    table = serializers.CharField(source="source_table")
    monitored_from = serializers.DateTimeField(allow_null=True)


class PauseFactsSerializer(serializers.Serializer[Feed]):
    by = serializers.CharField(source="paused_by", help_text="Empty: not known.")
    at = serializers.DateTimeField(source="paused_at", allow_null=True)
    why = serializers.CharField(source="paused_why")


_NAMES = serializers.ListField(child=serializers.CharField())


class DatasetSerializer(serializers.ModelSerializer[Dataset]):
    team = serializers.CharField(source="team.name")
    copies = CopySerializer(many=True)
    freshness_sla = SecondsField(allow_null=True)
    schema_changes = serializers.CharField()
    not_compared = serializers.ListField(child=serializers.CharField())
    feed_options = serializers.SerializerMethodField(
        help_text="Those that were set; empty where no job loads the dataset."
    )
    effective_feed_options = serializers.SerializerMethodField(help_text="All of them, set or by default.")
    columns_left_out = serializers.SerializerMethodField(help_text=LEFT_OUT_TEXT)
    columns_hashed = serializers.SerializerMethodField(help_text=HASHED_TEXT)
    columns_masked = serializers.SerializerMethodField(help_text=MASKED_TEXT)

    paused = serializers.SerializerMethodField(
        help_text="Who has paused what brings its rows, when and why; null: nobody has."
    )

    class Meta:
        model = Dataset
        fields = (
            "name",
            "description",
            "team",
            "tier",
            "kind",
            "ingested",
            "columns",
            "primary_key",
            "record_key",
            "reference_key",
            "partition_column",
            "partition_form",
            "grain",
            "partition_tz",
            "event_time",
            "freshness_sla",
            "overrides",
            "schema_changes",
            "not_compared",
            "grace_until",
            "onboarded_at",
            "metadata_version",
            "missing_since",
            "feed_options",
            "effective_feed_options",
            *HIDING_FIELDS,
            "paused",
            "copies",
        )

    @extend_schema_field(PauseFactsSerializer(allow_null=True))
    def get_paused(self, dataset: Dataset) -> dict[str, Any] | None:
        feed = dataset.feed_or_none
        return PauseFactsSerializer(feed).data if feed is not None and feed.paused else None

    @extend_schema_field(_NAMES)
    def get_columns_left_out(self, dataset: Dataset) -> list[str]:
        return hidden_names(dataset.feed_or_none)[LEFT_OUT]

    @extend_schema_field(_NAMES)
    def get_columns_hashed(self, dataset: Dataset) -> list[str]:
        return hidden_names(dataset.feed_or_none)[HASHED]

    @extend_schema_field(_NAMES)
    def get_columns_masked(self, dataset: Dataset) -> list[str]:
        return hidden_names(dataset.feed_or_none)[MASKED]

    @extend_schema_field(FeedOptionsField)
    def get_feed_options(self, dataset: Dataset) -> dict[str, Any]:
        return dataset.feed.options if takes_feed_options(dataset) else {}

    @extend_schema_field(FeedOptionsField)
    def get_effective_feed_options(self, dataset: Dataset) -> dict[str, Any]:
        return effective_options_of(dataset)


class PostedLineageSerializer(serializers.Serializer[Any]):
    """What became of an event that was posted, and the edges between datasets that changed with it."""

    result = serializers.CharField(
        help_text="`completed`, `open`: its run has not completed; `ignored`: nothing of it is kept."
    )
    added = serializers.ListField(child=serializers.CharField())
    pruned = serializers.ListField(child=serializers.CharField())


class LineageDaySerializer(serializers.Serializer[LineageDay]):
    """A look of one day, at the lineage `read_from` a source or, where that is empty, at the tables: what it changed, by kind."""

    day = serializers.DateField()
    read_from = serializers.CharField(source="source")
    attempt = serializers.IntegerField()
    ended_at = serializers.DateTimeField(allow_null=True)
    report = serializers.JSONField()
    error = serializers.CharField()
