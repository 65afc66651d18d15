"""How tests, units and results read in JSON. Durations are seconds."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from lakehub.catalog.serializers import Seconds
from lakehub.kernel.interval import EVERYTHING
from quality.coverage import Coverage, Uncovered
from quality.models import Result, SkippedCheck, Test, Unit
from quality.reports import WeeklyReport
from quality.versions import Change


class TestSerializer(serializers.Serializer[Test]):
    """A test with what it asks now, and because of which metadata."""

    __test__ = False

    key = serializers.CharField()
    title = serializers.CharField()
    category = serializers.CharField()
    check_name = serializers.CharField()
    generated = serializers.BooleanField()
    gating = serializers.BooleanField()
    version = serializers.IntegerField(source="version.number")
    expression = serializers.CharField(source="version.expression")
    flattened = serializers.CharField(source="version.flattened")
    sustain = Seconds(source="version.sustain")
    cadence = Seconds(source="version.cadence", allow_null=True)
    due_after = Seconds(source="version.due_after")
    created_at = serializers.DateTimeField(source="version.created_at")
    because = serializers.CharField(source="version.because")
    metadata_version = serializers.IntegerField(source="version.metadata_version")


class SkippedSerializer(serializers.Serializer[SkippedCheck]):
    check_name = serializers.CharField()
    reason = serializers.CharField()
    mendable = serializers.BooleanField()


class NewTestSerializer(serializers.Serializer[Any]):
    """What `POST /datasets/{name}/tests` takes."""

    key = serializers.RegexField(r"^[a-z][a-z0-9_.@-]{0,99}$", max_length=100)
    title = serializers.CharField(max_length=200)
    expression = serializers.CharField(max_length=4000)
    gating = serializers.BooleanField(default=True)


class RunSerializer(serializers.Serializer[Any]):
    """Which units to run now; what is left out is not narrowed."""

    tests = serializers.ListField(child=serializers.CharField(max_length=100), max_length=100, default=list)
    data_center = serializers.CharField(max_length=63, default="", allow_blank=True)
    start = serializers.DateTimeField(default=EVERYTHING.start)
    end = serializers.DateTimeField(default=EVERYTHING.end)


class RanSerializer(serializers.Serializer[Any]):
    units = serializers.IntegerField()


class AskExpressionSerializer(serializers.Serializer[Any]):
    """What `POST /datasets/{name}/expression` takes."""

    expression = serializers.CharField(max_length=4000, default="", allow_blank=True)


class CheckedSerializer(serializers.Serializer[Any]):
    """An expression that is understood, in the form that is stored."""

    flattened = serializers.CharField()
    readable = serializers.CharField()


class UnitSerializer(serializers.Serializer[Unit]):
    """What is believed of one test on one copy and data range, and what was seen last. No start or end: everything."""

    id = serializers.IntegerField()
    test = serializers.CharField(source="test.key")
    category = serializers.CharField(source="test.category")
    data_center = serializers.CharField(source="copy.data_center.name")
    start = serializers.SerializerMethodField()
    end = serializers.SerializerMethodField()
    verdict = serializers.CharField()
    reason = serializers.CharField()
    verdict_at = serializers.DateTimeField(allow_null=True)
    observed = serializers.FloatField(allow_null=True)
    threshold = serializers.CharField()
    detail = serializers.JSONField()
    tested_instant = serializers.CharField()
    latest_at = serializers.DateTimeField(allow_null=True)
    due_at = serializers.DateTimeField(allow_null=True)

    def get_start(self, unit: Unit) -> str | None:
        return None if unit.start <= EVERYTHING.start else unit.start.isoformat()

    def get_end(self, unit: Unit) -> str | None:
        return None if unit.end >= EVERYTHING.end else unit.end.isoformat()


class ResultSerializer(serializers.Serializer[Result]):
    id = serializers.IntegerField()
    outcome = serializers.CharField()
    observed = serializers.FloatField(allow_null=True)
    threshold = serializers.CharField()
    detail = serializers.JSONField()
    trigger = serializers.CharField()
    read_at = serializers.DateTimeField()
    instant = serializers.CharField()
    version = serializers.IntegerField(source="version.number")


class VersionSerializer(serializers.Serializer[Change]):
    """What a test asked from `created_at` on, and what changed then."""

    number = serializers.IntegerField(source="version.number")
    created_at = serializers.DateTimeField(source="version.created_at")
    because = serializers.CharField(source="version.because")
    metadata_version = serializers.IntegerField(source="version.metadata_version")
    expression = serializers.CharField(source="version.expression")
    flattened = serializers.CharField(source="version.flattened")
    sustain = Seconds(source="version.sustain")
    cadence = Seconds(source="version.cadence", allow_null=True)
    differences = serializers.ListField(child=serializers.CharField())


class TierSerializer(serializers.Serializer[Any]):
    """What a tier promises, as a dataset would override it."""

    tier = serializers.IntegerField()
    slas = serializers.DictField(child=serializers.CharField())


class UncoveredSerializer(serializers.Serializer[Uncovered]):
    dataset = serializers.CharField()
    tier = serializers.IntegerField()
    team = serializers.CharField()
    why = serializers.ListField(child=serializers.CharField())


class CoverageSerializer(serializers.Serializer[Coverage]):
    """`share` is null where there are no such datasets."""

    tiers = serializers.ListField(child=serializers.IntegerField())
    datasets = serializers.IntegerField()
    covered = serializers.IntegerField()
    share = serializers.FloatField(allow_null=True)
    uncovered = UncoveredSerializer(many=True)


class DatasetCoverageSerializer(serializers.Serializer[Any]):
    """For which version of its metadata the tests of a dataset were made, and what they lack."""

    covered = serializers.BooleanField()
    why = serializers.ListField(child=serializers.CharField())
    metadata_version = serializers.IntegerField()
    made_for_version = serializers.IntegerField()
    made_at = serializers.DateTimeField(allow_null=True)
    problem = serializers.CharField()
    retry_at = serializers.DateTimeField(allow_null=True)


class SkippedOfTeamSerializer(serializers.Serializer[Any]):
    dataset = serializers.CharField()
    tier = serializers.IntegerField()
    check_name = serializers.CharField(source="check")
    missing = serializers.CharField()


class SilentSerializer(serializers.Serializer[Any]):
    dataset = serializers.CharField()
    test = serializers.CharField()
    title = serializers.CharField()
    data_center = serializers.CharField()
    outcome = serializers.CharField()
    ranges = serializers.IntegerField()
    last_seen_at = serializers.DateTimeField(allow_null=True)
    cause = serializers.CharField()


class LookAtSerializer(serializers.Serializer[Any]):
    dataset = serializers.CharField()
    test = serializers.CharField()
    title = serializers.CharField()
    why = serializers.CharField()


class GoneSerializer(serializers.Serializer[Any]):
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
    skipped = SkippedOfTeamSerializer(many=True)
    without_contact = serializers.ListField(child=serializers.CharField())
    silent = SilentSerializer(many=True)
    look_at = LookAtSerializer(many=True)
    gone = GoneSerializer(many=True)
