"""Coverage, the weekly report and the tiers as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from quality.generation.coverage import TierCoverage, UncoveredDataset
from quality.generation.weekly_report import WeeklyReport


class TierSerializer(serializers.Serializer[Any]):
    """What a tier promises, as a dataset would override it."""

    tier = serializers.IntegerField()
    slas = serializers.DictField(child=serializers.CharField())


class UncoveredDatasetSerializer(serializers.Serializer[UncoveredDataset]):
    dataset = serializers.CharField()
    tier = serializers.IntegerField()
    team = serializers.CharField()
    why = serializers.ListField(child=serializers.CharField(), source="reasons")


class CoverageSerializer(serializers.Serializer[TierCoverage]):
    """`share` is null where there are no such datasets."""

    tiers = serializers.ListField(child=serializers.IntegerField())
    datasets = serializers.IntegerField()
    covered = serializers.IntegerField()
    share = serializers.FloatField(allow_null=True)
    uncovered = UncoveredDatasetSerializer(many=True)


class DatasetCoverageSerializer(serializers.Serializer[Any]):
    """For which version of its metadata the tests of a dataset were made, and what they lack."""

    covered = serializers.BooleanField()
    why = serializers.ListField(child=serializers.CharField())
    metadata_version = serializers.IntegerField()
    made_for_version = serializers.IntegerField()
    made_at = serializers.DateTimeField(allow_null=True)
    problem = serializers.CharField()
    retry_at = serializers.DateTimeField(allow_null=True)


class SkippedTestSerializer(serializers.Serializer[Any]):
    dataset = serializers.CharField()
    tier = serializers.IntegerField()
    check_name = serializers.CharField(source="check")
    missing = serializers.CharField()


class SilentTestSerializer(serializers.Serializer[Any]):
    dataset = serializers.CharField()
    test = serializers.CharField()
    title = serializers.CharField()
    data_center = serializers.CharField()
    outcome = serializers.CharField()
    ranges = serializers.IntegerField()
    last_seen_at = serializers.DateTimeField(allow_null=True)
    cause = serializers.CharField()


class ReviewItemSerializer(serializers.Serializer[Any]):
    dataset = serializers.CharField()
    test = serializers.CharField()
    title = serializers.CharField()
    why = serializers.CharField()


class MissingDatasetSerializer(serializers.Serializer[Any]):
    dataset = serializers.CharField()
    missing_since = serializers.DateTimeField()
    offboards_at = serializers.DateTimeField(allow_null=True)
    offboarded_at = serializers.DateTimeField(allow_null=True)


class WeeklyReportSerializer(serializers.Serializer[WeeklyReport]):
    """What the owners of a team's datasets are told each week."""

    team = serializers.CharField()
    week = serializers.DateField()
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    addresses = serializers.ListField(child=serializers.CharField())
    datasets = serializers.IntegerField()
    coverage = CoverageSerializer()
    skipped = SkippedTestSerializer(many=True)
    without_contact = serializers.ListField(child=serializers.CharField())
    silent = SilentTestSerializer(many=True)
    look_at = ReviewItemSerializer(many=True)
    gone = MissingDatasetSerializer(many=True)
