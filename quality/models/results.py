"""Results, their hourly rollup, changes of verdict, and cached measurements."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from lakehub.catalog.models import DatasetCopy
from quality.models.external_runs import ExternalRun as ExternalRun
from quality.models.external_runs import PipelineHook as PipelineHook
from quality.models.quality_tests import QualityTestVersion
from quality.models.rules import ColumnRule as ColumnRule
from quality.models.rules import Metric as Metric
from quality.models.units import OUTCOME_CHOICES, VERDICT_CHOICES, Unit


class Result(models.Model):
    """The stored outcome of one execution. Appended, never changed; kept 30 days."""

    unit = models.ForeignKey(Unit, on_delete=models.CASCADE, related_name="results", db_index=False)
    version = models.ForeignKey(QualityTestVersion, on_delete=models.PROTECT, related_name="+")
    outcome = models.CharField(max_length=10, choices=OUTCOME_CHOICES)
    observed = models.FloatField(null=True, blank=True)
    threshold = models.CharField(max_length=60, blank=True)
    detail = models.JSONField(default=dict, blank=True)
    """The counts behind the value, the formula in words, the error."""
    trigger = models.CharField(max_length=20)
    """schedule, rerun, late_data, manual, baseline, finding"""
    read_at = models.DateTimeField()
    """When the data was read: verdicts go by this time."""
    instant = models.CharField(max_length=30, blank=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["unit", "-read_at"], name="result_newest_of_unit"),
            models.Index(fields=["read_at"], name="result_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.outcome} of {self.unit}"


class FailingRows(models.Model):
    """Some of the rows that break a unit's test, as they were read last; kept while it fails, and as long as results after that."""

    unit = models.OneToOneField(Unit, on_delete=models.CASCADE, related_name="failing_rows", primary_key=True)
    result = models.ForeignKey(Result, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    """None: it is no longer kept."""
    read_at = models.DateTimeField()
    observed = models.CharField(max_length=60, blank=True)
    """What the test observed then."""
    samples = models.JSONField(default=list)
    """[{"measure", "columns", "rows", "why"}], values as texts."""

    class Meta:
        indexes: ClassVar = [models.Index(fields=["read_at"], name="failing_rows_by_age")]

    def __str__(self) -> str:
        return f"rows of {self.unit}"


class CachedMeasurement(models.Model):
    """What was measured last of a partition of a copy; used again while the partition is in the same state."""

    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="measurements")
    start = models.DateTimeField()
    end = models.DateTimeField()
    measure = models.CharField(max_length=32)
    """A digest of what was measured, by which engine."""
    version = models.CharField(max_length=32)
    """A digest of the state that it was measured in."""
    instant = models.CharField(max_length=30, blank=True)
    """The commit that was read."""
    answer = models.JSONField(null=True)
    """As quality.domain.measurement_codec writes it."""
    groups = models.PositiveIntegerField(default=0)
    read_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["copy", "start", "end", "measure"], name="one_answer_a_measure")
        ]
        indexes: ClassVar = [models.Index(fields=["read_at"], name="measurement_by_age")]

    def __str__(self) -> str:
        return f"{self.measure} of {self.copy} [{self.start}, {self.end})"


class HourlyResults(models.Model):
    """The results of a unit in one hour, added up; what is left of them after their 30 days."""

    unit = models.ForeignKey(Unit, on_delete=models.CASCADE, related_name="hours", db_index=False)
    hour = models.DateTimeField()
    passed = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    no_data = models.PositiveIntegerField(default=0)
    errors = models.PositiveIntegerField(default=0)
    min_observed = models.FloatField(null=True)
    max_observed = models.FloatField(null=True)
    sum_observed = models.FloatField(null=True)
    observed_count = models.PositiveIntegerField(default=0)
    """How many of them observed a value: total / measured is the mean."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["unit", "hour"], name="one_sum_an_hour")]
        indexes: ClassVar = [models.Index(fields=["-hour"], name="hour_newest")]

    def __str__(self) -> str:
        return f"{self.unit} at {self.hour}"


class Flip(models.Model):
    """A unit's verdict changed. Incidents claims it; it is also the audit trail and the statistic."""

    unit = models.ForeignKey(Unit, on_delete=models.CASCADE, related_name="flips", db_index=False)
    result = models.ForeignKey(Result, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    """None: time alone changed it, or a waiver."""
    was = models.CharField(max_length=10, choices=VERDICT_CHOICES)
    becomes = models.CharField(max_length=10, choices=VERDICT_CHOICES)
    reason = models.CharField(max_length=60, blank=True)
    at = models.DateTimeField()
    failing_since = models.DateTimeField(null=True, blank=True)
    """f, where it becomes FAIL: the life of the span begins there."""
    affected_from = models.DateTimeField(null=True, blank=True)
    claimed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["id"], condition=Q(claimed_at=None), name="flip_unclaimed"),
            models.Index(fields=["unit", "-at"], name="flip_newest_of_unit"),
        ]

    def __str__(self) -> str:
        return f"{self.unit}: {self.was} → {self.becomes}"
