"""The application for onboarding in JSON."""

from __future__ import annotations

from datetime import timedelta

from rest_framework import serializers

from lakehub.catalog.models import MAX_COPIES, DatasetKind
from lakehub.catalog.onboarding.onboarding_request import CopyRequest, OnboardingRequest, UpstreamRequest
from lakehub.catalog.serializers.fields import (
    HASHED_TEXT,
    LEFT_OUT_TEXT,
    MASKED_TEXT,
    FeedOptionsField,
    OverridesField,
    SecondsField,
    hidden_columns_field,
)
from lakehub.kernel.partitions import Grain


class UpstreamSerializer(serializers.Serializer[UpstreamRequest]):
    dataset = serializers.CharField(max_length=63)
    one_to_one = serializers.BooleanField(default=False)


class CopyRequestSerializer(serializers.Serializer[CopyRequest]):
    """Where the copy in one data center lies, of a dataset that is only monitored."""

    data_center = serializers.CharField(max_length=63)
    connection = serializers.CharField(max_length=63)
    table = serializers.CharField(max_length=500)


def _column_names_field() -> serializers.ListField:
    return serializers.ListField(child=serializers.CharField(max_length=100), max_length=32, default=list)


class OnboardingRequestSerializer(serializers.Serializer[OnboardingRequest]):
    """What `POST /datasets` takes: the application for onboarding."""

    name = serializers.CharField(max_length=63)
    team = serializers.CharField(max_length=63)
    tier = serializers.IntegerField()
    connection = serializers.CharField(max_length=63)
    table = serializers.CharField(max_length=500)
    data_centers = serializers.ListField(child=serializers.CharField(max_length=63), max_length=MAX_COPIES)
    copies = serializers.ListField(child=CopyRequestSerializer(), default=list, max_length=MAX_COPIES)
    kind = serializers.CharField(max_length=20, default=DatasetKind.APPEND_PLUS_UPDATE.value)
    primary_key = _column_names_field()
    record_key = _column_names_field()
    reference_key = serializers.CharField(max_length=100, default="", allow_blank=True)
    cursor_column = serializers.CharField(max_length=100, default="", allow_blank=True)
    partition_column = serializers.CharField(max_length=200, default="", allow_blank=True)
    partition_form = serializers.CharField(max_length=200, default="", allow_blank=True)
    grain = serializers.CharField(max_length=10, default=Grain.NONE.value)
    partition_tz = serializers.CharField(max_length=64, default="UTC")
    event_time = serializers.CharField(max_length=100, default="", allow_blank=True)
    upstream = serializers.ListField(child=UpstreamSerializer(), max_length=100, default=list)
    ingested = serializers.BooleanField(default=True)
    every = SecondsField(default=timedelta(minutes=5))
    freshness_sla = SecondsField(default=None, allow_null=True)
    grace = SecondsField(default=timedelta())
    description = serializers.CharField(default="", allow_blank=True, max_length=4000)
    overrides = OverridesField(default=dict)
    feed_options = FeedOptionsField(default=dict)
    columns_left_out = hidden_columns_field(LEFT_OUT_TEXT, default=list)
    columns_hashed = hidden_columns_field(HASHED_TEXT, default=list)
    columns_masked = hidden_columns_field(MASKED_TEXT, default=list)

    def to_request(self) -> OnboardingRequest:
        values = dict(self.validated_data)
        values["upstream"] = tuple(UpstreamRequest(**upstream) for upstream in values["upstream"])
        values["copies"] = tuple(CopyRequest(**copy) for copy in values["copies"])
        return OnboardingRequest(**values)
