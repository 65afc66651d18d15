"""Backtests as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from lakehub.catalog.serializers.fields import SecondsField
from quality.backtest.draft import DEFAULT_DAYS
from quality.domain.backtest import PastRun


class BacktestInputSerializer(serializers.Serializer[Any]):
    """What `POST /datasets/{name}/backtest` takes: an expression, or the key of a test."""

    expression = serializers.CharField(max_length=4000, default="", allow_blank=True)
    test = serializers.CharField(max_length=100, default="", allow_blank=True)
    data_center = serializers.CharField(max_length=63, default="", allow_blank=True)
    days = serializers.IntegerField(default=DEFAULT_DAYS)


class PastRunSerializer(serializers.Serializer[PastRun]):
    """What the test says of one partition, with the data as it is today."""

    partition = serializers.CharField(source="name")
    due_at = serializers.DateTimeField()
    outcome = serializers.CharField()
    observed = serializers.CharField()
    threshold = serializers.CharField()
    behind = serializers.CharField()
    cause = serializers.CharField()
    value = serializers.FloatField(allow_null=True)
    facts = serializers.SerializerMethodField()

    def get_facts(self, run: PastRun) -> dict[str, str]:
        return dict(run.facts)


class PageSerializer(serializers.Serializer[Any]):
    """An alarm that there would have been; `ended_at` where that is known."""

    at = serializers.DateTimeField()
    first = serializers.CharField()
    last = serializers.CharField()
    partitions = serializers.IntegerField()
    observed = serializers.CharField()
    threshold = serializers.CharField()
    ended_at = serializers.DateTimeField(allow_null=True)


class CopyBacktestSerializer(serializers.Serializer[Any]):
    data_center = serializers.CharField()
    runs = PastRunSerializer(many=True)
    pages = PageSerializer(many=True)
    notes = serializers.ListField(child=serializers.CharField())


class BacktestSerializer(serializers.Serializer[Any]):
    """`cut`: there was no time for the oldest partitions."""

    expression = serializers.CharField()
    flattened = serializers.CharField()
    days = serializers.IntegerField()
    sustain = SecondsField()
    severity = serializers.CharField()
    summary = serializers.CharField()
    cut = serializers.BooleanField(source="is_partial")
    took = SecondsField(source="duration")
    copies = CopyBacktestSerializer(many=True)
