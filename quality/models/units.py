"""The unit of testing: one test on one copy and one partition, with its current facts and schedule."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.outcome import Outcome, Verdict
from quality.models.external_runs import ExternalRun as ExternalRun
from quality.models.external_runs import PipelineHook as PipelineHook
from quality.models.quality_tests import QualityTest
from quality.models.rules import ColumnRule as ColumnRule
from quality.models.rules import Metric as Metric

OUTCOME_CHOICES = [(outcome.value, outcome.value) for outcome in Outcome]
VERDICT_CHOICES = [(verdict.value, verdict.value) for verdict in Verdict]


class Lane(models.IntegerChoices):
    """Who goes first when much is due; a flood of late partitions stays behind."""

    REQUESTED = 0, "asked for"
    DUE = 1, "due"
    LATE = 2, "late data"


class Unit(models.Model):
    """(test, copy, data range): the facts of its verdict, and when it is run next. One mutable row that holds now."""

    # Both begin an index below; one of its own would be written with every change of a unit.
    test = models.ForeignKey(QualityTest, on_delete=models.CASCADE, related_name="units", db_index=False)
    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="units", db_index=False)
    start = models.DateTimeField()
    end = models.DateTimeField()

    # the facts of quality.domain.verdicts.unit_verdict
    last_pass_at = models.DateTimeField(null=True, blank=True)
    first_fail_at = models.DateTimeField(null=True, blank=True)
    last_fail_at = models.DateTimeField(null=True, blank=True)
    sustain = models.DurationField(null=True, blank=True)
    """The sustain period that was in force at the first failure."""
    latest_outcome = models.CharField(max_length=10, choices=OUTCOME_CHOICES, blank=True)
    latest_at = models.DateTimeField(null=True, blank=True)
    touched_at = models.DateTimeField(null=True, blank=True)
    """The latest commit that touched the range and that no PASS has read yet."""
    retest_due_at = models.DateTimeField(null=True, blank=True)
    """From here on the retest of such a commit is overdue."""
    unread_commits = models.JSONField(default=list, blank=True)
    """Such commits and when the retest of each is overdue, as pairs of texts."""
    waiver = models.CharField(max_length=20, blank=True)
    """false_positive or accepted: a person resolved the failure by force. not_expected: the calendar has no such range."""
    waived_at = models.DateTimeField(null=True, blank=True)
    affected_from = models.DateTimeField(null=True, blank=True)
    """Freshness: everything from here on is affected."""

    # what is believed now, for lists; the gate judges the facts anew
    verdict = models.CharField(max_length=10, choices=VERDICT_CHOICES, default=Verdict.UNKNOWN)
    reason = models.CharField(max_length=60, blank=True)
    verdict_at = models.DateTimeField(null=True, blank=True)
    reevaluate_at = models.DateTimeField(null=True, blank=True)
    """When time alone may change the verdict."""

    # what was seen last
    observed = models.FloatField(null=True, blank=True)
    threshold = models.CharField(max_length=60, blank=True)
    detail = models.JSONField(default=dict, blank=True)
    tested_instant = models.CharField(max_length=30, blank=True)
    """The commit that was read."""
    failing_seed = models.CharField(max_length=40, blank=True)
    """What drew the sample that failed: reruns look for the same records until the test passes."""

    # the schedule
    due_at = models.DateTimeField(null=True, blank=True)
    lane = models.PositiveSmallIntegerField(choices=Lane.choices, default=Lane.DUE)
    read_anew = models.BooleanField(default=False)
    """A person asked for its next run, in whatever lane it waits: it uses nothing that was kept."""
    attempt = models.PositiveSmallIntegerField(default=0)
    """How many runs of the present failing streak there were."""
    resource = models.CharField(max_length=130, blank=True)
    """The scarcest engine that its test runs on, and where it reads a database the connection: `spark`, `sqlalchemy:ops`."""
    leased_by = models.CharField(max_length=100, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["test", "copy", "start", "end"], name="one_unit_a_range")
        ]
        indexes: ClassVar = [
            models.Index(fields=["copy", "lane", "due_at"], condition=Q(due_at__isnull=False), name="unit_due"),
            models.Index(fields=["reevaluate_at"], condition=Q(reevaluate_at__isnull=False), name="unit_judge"),
            models.Index(fields=["copy", "start", "end"], name="unit_overlap"),
            models.Index(fields=["verdict", "copy"], condition=~Q(verdict="pass"), name="unit_not_passing"),
        ]

    def __str__(self) -> str:
        return f"{self.test} on {self.copy} [{self.start}, {self.end})"
