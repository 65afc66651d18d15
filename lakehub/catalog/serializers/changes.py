"""Changes of a dataset, and what would come of them, in JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from lakehub.catalog.datasets.changes import MAX_REASON_LENGTH
from lakehub.catalog.models import MAX_COPIES, Dataset
from lakehub.catalog.onboarding.onboarding_request import CopyRequest, UpstreamRequest
from lakehub.catalog.ports import Consequence
from lakehub.catalog.serializers.fields import (
    HASHED_TEXT,
    LEFT_OUT_TEXT,
    MASKED_TEXT,
    FeedOptionsField,
    OverridesField,
    SecondsField,
    hidden_columns_field,
)
from lakehub.catalog.serializers.onboarding import CopyRequestSerializer, UpstreamSerializer
from lakehub.http.instants import InstantField


class ConsequenceSerializer(serializers.Serializer[Consequence]):
    """What a change would do: `about` tests, reads, incidents or the gate."""

    about = serializers.CharField()
    text = serializers.CharField()


class ConsequencesSerializer(serializers.Serializer[Any]):
    consequences = ConsequenceSerializer(many=True)


class DatasetChangeSerializer(serializers.Serializer[Dataset]):
    """What `PATCH /datasets/{name}` takes; a field left out stays. `every`, `inputs`, `paused` and `feed_options` are the feed's.

    `data_centers` and `upstream` are all that there are to be; `copies` names those that lie elsewhere from now on.
    """

    team = serializers.CharField(max_length=63, required=False)
    connection = serializers.CharField(max_length=63, required=False)
    table = serializers.CharField(max_length=500, required=False)
    data_centers = serializers.ListField(
        child=serializers.CharField(max_length=63), max_length=MAX_COPIES, required=False
    )
    copies = serializers.ListField(child=CopyRequestSerializer(), max_length=MAX_COPIES, required=False)
    upstream = serializers.ListField(child=UpstreamSerializer(), max_length=100, required=False)
    partition_column = serializers.CharField(max_length=200, required=False, allow_blank=True)
    grain = serializers.CharField(max_length=10, required=False)
    partition_form = serializers.CharField(
        max_length=200, required=False, allow_blank=True, help_text="Empty: as the type of the column says."
    )
    partition_tz = serializers.CharField(max_length=64, required=False)

    tier = serializers.IntegerField(required=False)
    kind = serializers.CharField(max_length=20, required=False)
    description = serializers.CharField(required=False, allow_blank=True, max_length=4000)
    primary_key = serializers.ListField(child=serializers.CharField(max_length=100), max_length=32, required=False)
    freshness_sla = SecondsField(required=False, allow_null=True)
    grace_until = InstantField(required=False, allow_null=True)
    event_time = serializers.CharField(required=False, allow_blank=True, max_length=100)
    overrides = OverridesField(required=False)
    schema_changes = serializers.CharField(
        max_length=20,
        required=False,
        allow_blank=True,
        help_text="Which changes of columns open an incident: `incident` (all), `breaking` (gone or retyped, the usual one) or `show` (none).",
    )
    not_compared = serializers.ListField(
        child=serializers.CharField(max_length=100),
        max_length=100,
        required=False,
        help_text="Columns that each data center writes for itself: `difference@...` leaves them out.",
    )
    every = SecondsField(required=False)
    inputs = serializers.ListField(
        child=serializers.CharField(max_length=63),
        max_length=100,
        required=False,
        allow_null=True,
        help_text="Datasets in the lake that the gate is asked about before a job starts; null: as lineage has it.",
    )
    paused = serializers.BooleanField(required=False)
    paused_why = serializers.CharField(
        max_length=MAX_REASON_LENGTH,
        required=False,
        help_text="Only with `paused`: the reason, which pages and runs show.",
    )
    feed_options = FeedOptionsField(
        required=False,
        help_text="All that are to be set: what is left out has its default. How the feed's jobs read and write.",
    )
    columns_left_out = hidden_columns_field(LEFT_OUT_TEXT, required=False)
    columns_hashed = hidden_columns_field(HASHED_TEXT, required=False)
    columns_masked = hidden_columns_field(MASKED_TEXT, required=False)

    def to_changes(self) -> dict[str, Any]:
        """As the use case takes them."""
        values = dict(self.validated_data)
        if "copies" in values:
            values["copies"] = tuple(CopyRequest(**copy) for copy in values["copies"])
        if "upstream" in values:
            values["upstream"] = tuple(UpstreamRequest(**upstream) for upstream in values["upstream"])
        return values
