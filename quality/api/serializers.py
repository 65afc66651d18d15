"""How tests, units and results read in JSON. Durations are seconds."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from lakehub.catalog.serializers.fields import SecondsField
from lakehub.http.instants import InstantField
from lakehub.kernel.interval import EVERYTHING
from quality.execution.row_rights import RowRights
from quality.generation.version_history import VersionChange
from quality.models import FailingRows, QualityTest, Result, SkippedCheck, Unit

_DETAIL = "All that the run saw; records by name only for who may see rows of every dataset whose they are."


class QualityTestSerializer(serializers.Serializer[QualityTest]):
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
    sustain = SecondsField(source="version.sustain")
    cadence = SecondsField(source="version.cadence", allow_null=True)
    due_after = SecondsField(source="version.due_after")
    created_at = serializers.DateTimeField(source="version.created_at")
    because = serializers.CharField(source="version.because")
    metadata_version = serializers.IntegerField(source="version.metadata_version")


class SkippedCheckSerializer(serializers.Serializer[SkippedCheck]):
    check_name = serializers.CharField()
    reason = serializers.CharField()
    mendable = serializers.BooleanField()


class QualityTestInputSerializer(serializers.Serializer[Any]):
    """What `POST /datasets/{name}/tests` takes."""

    key = serializers.RegexField(r"^[a-z][a-z0-9_.@-]{0,99}$", max_length=100)
    title = serializers.CharField(max_length=200)
    expression = serializers.CharField(max_length=4000)
    gating = serializers.BooleanField(default=True)


class RunRequestSerializer(serializers.Serializer[Any]):
    """Which units to run now; what is left out is not narrowed."""

    tests = serializers.ListField(child=serializers.CharField(max_length=100), max_length=100, default=list)
    data_center = serializers.CharField(max_length=63, default="", allow_blank=True)
    start = InstantField(default=EVERYTHING.start)
    end = InstantField(default=EVERYTHING.end)


class RequestedUnitsSerializer(serializers.Serializer[Any]):
    units = serializers.IntegerField()


class ExpressionInputSerializer(serializers.Serializer[Any]):
    """What `POST /datasets/{name}/expression` takes."""

    expression = serializers.CharField(max_length=4000, default="", allow_blank=True)


class CheckedExpressionSerializer(serializers.Serializer[Any]):
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
    detail = serializers.SerializerMethodField()
    tested_instant = serializers.CharField()
    latest_at = serializers.DateTimeField(allow_null=True)
    due_at = serializers.DateTimeField(allow_null=True)

    @extend_schema_field(serializers.JSONField(help_text=_DETAIL))
    def get_detail(self, unit: Unit) -> Any:
        rights: RowRights = self.context["row_rights"]
        return rights.visible_detail(unit.test.dataset, unit.detail)

    def get_start(self, unit: Unit) -> str | None:
        return None if unit.start <= EVERYTHING.start else unit.start.isoformat()

    def get_end(self, unit: Unit) -> str | None:
        return None if unit.end >= EVERYTHING.end else unit.end.isoformat()


class ResultSerializer(serializers.Serializer[Result]):
    id = serializers.IntegerField()
    outcome = serializers.CharField()
    observed = serializers.FloatField(allow_null=True)
    threshold = serializers.CharField()
    detail = serializers.SerializerMethodField()
    trigger = serializers.CharField()
    read_at = serializers.DateTimeField()
    instant = serializers.CharField()
    version = serializers.IntegerField(source="version.number")

    @extend_schema_field(serializers.JSONField(help_text=_DETAIL))
    def get_detail(self, result: Result) -> Any:
        rights: RowRights = self.context["row_rights"]
        return rights.visible_detail(result.unit.test.dataset, result.detail)


class RowSampleSerializer(serializers.Serializer[Any]):
    """Rows that one measure of a test counts, as texts and nulls. `why`: they could not be read."""

    measure = serializers.CharField()
    columns = serializers.ListField(child=serializers.CharField())
    rows = serializers.ListField(child=serializers.ListField(child=serializers.CharField(allow_null=True)))
    why = serializers.CharField()


class FailingRowsSerializer(serializers.Serializer[FailingRows]):
    """Rows that break a test in one data range. `result`: null where it is no longer kept."""

    unit = serializers.IntegerField(source="unit_id")
    result = serializers.IntegerField(source="result_id", allow_null=True)
    test = serializers.CharField(source="unit.test.key")
    data_center = serializers.CharField(source="unit.copy.data_center.name")
    read_at = serializers.DateTimeField()
    observed = serializers.CharField()
    fails = serializers.SerializerMethodField(help_text="The test still fails there.")
    samples = RowSampleSerializer(many=True)

    def get_fails(self, rows: FailingRows) -> bool:
        return rows.unit.first_fail_at is not None


class VersionSerializer(serializers.Serializer[VersionChange]):
    """What a test asked from `created_at` on, and what changed then."""

    number = serializers.IntegerField(source="version.number")
    created_at = serializers.DateTimeField(source="version.created_at")
    because = serializers.CharField(source="version.because")
    metadata_version = serializers.IntegerField(source="version.metadata_version")
    expression = serializers.CharField(source="version.expression")
    flattened = serializers.CharField(source="version.flattened")
    sustain = SecondsField(source="version.sustain")
    cadence = SecondsField(source="version.cadence", allow_null=True)
    differences = serializers.ListField(child=serializers.CharField())
