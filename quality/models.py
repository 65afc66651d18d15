"""Tests, the units that they are run on, what came out, and each change of a unit's verdict."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from lakehub.accounts.models import Team
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.outcome import Outcome, Verdict
from quality.announced import FinishedRun as FinishedRun
from quality.announced import PipelineHook as PipelineHook
from quality.declared import ColumnRule as ColumnRule
from quality.declared import Metric as Metric

OUTCOMES = [(outcome.value, outcome.value) for outcome in Outcome]
VERDICTS = [(verdict.value, verdict.value) for verdict in Verdict]


class Category(models.TextChoices):
    FRESHNESS = "freshness"
    COMPLETENESS = "completeness"
    DUPLICATES = "duplicates"
    CONSISTENCY = "consistency", "cross-dc consistency"
    INGESTION = "ingestion"
    OTHERS = "others"


class Test(models.Model):
    """One expectation of a dataset. Its definition is in the current version; old versions stay."""

    __test__ = False  # not a test case of pytest's

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="tests")
    key = models.CharField(max_length=100)
    """Stable within the dataset, so that regenerating finds it again."""
    title = models.CharField(max_length=200)
    category = models.CharField(max_length=20, choices=Category.choices)
    check_name = models.CharField(max_length=40)
    """The plug-in of quality.checks."""
    generated = models.BooleanField(default=True)
    gating = models.BooleanField(default=True)
    """Its verdict counts for the gate and for the status of the dataset."""
    version = models.ForeignKey("TestVersion", on_delete=models.PROTECT, null=True, related_name="+")
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["dataset", "key"], name="one_test_a_key")]
        indexes: ClassVar = [
            models.Index(fields=["dataset"], condition=Q(retired_at=None), name="test_live_of_dataset")
        ]

    def __str__(self) -> str:
        return f"{self.dataset}: {self.title}"


class TestVersion(models.Model):
    """What a test asks, from `created_at` until the next version; `because` says which metadata made it."""

    __test__ = False

    test = models.ForeignKey(Test, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    expression = models.TextField()
    """As people write it."""
    flattened = models.TextField()
    """The canonical form that is run."""
    sustain = models.DurationField()
    cadence = models.DurationField(null=True, blank=True)
    """None: a test of partitions, run when one is due or changed."""
    due_after = models.DurationField()
    """How long after its end a partition must be whole: the freshness SLA."""
    rerun_base = models.DurationField()
    rerun_cap = models.DurationField()
    created_at = models.DateTimeField()
    because = models.TextField(blank=True)
    metadata_version = models.PositiveIntegerField(default=0)
    """Of the dataset when this was made; 0: not known."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["test", "number"], name="one_version_a_number")]

    def __str__(self) -> str:
        return f"{self.test} v{self.number}"


class TestRead(models.Model):
    """A name by which the current version reads more than the tested partition: a dataset's, `upstream`, or `this` where it
    looks back. So whom a commit concerns is found by an index."""

    __test__ = False

    test = models.ForeignKey(Test, on_delete=models.CASCADE, related_name="reads", db_index=False)
    name = models.CharField(max_length=63)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["test", "name"], name="one_read_a_name")]
        indexes: ClassVar = [models.Index(fields=["name"], name="read_of_name")]

    def __str__(self) -> str:
        return f"{self.test} reads {self.name}"


class SkippedCheck(models.Model):
    """A type of test that this dataset could not have, and what is missing to have it."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="skipped_checks")
    check_name = models.CharField(max_length=40)
    reason = models.TextField()
    mendable = models.BooleanField(default=True)
    """Its owners are asked for what is missing."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["dataset", "check_name"], name="one_reason_a_check")]

    def __str__(self) -> str:
        return f"{self.dataset}: no {self.check_name}"


class Coverage(models.Model):
    """For which version of its metadata a dataset's tests were generated; behind the dataset's own, they are again."""

    dataset = models.OneToOneField(Dataset, on_delete=models.CASCADE, related_name="coverage", primary_key=True)
    metadata_version = models.PositiveIntegerField(default=0)
    """0: for none yet."""
    generated_at = models.DateTimeField(null=True)
    problem = models.TextField(blank=True)
    """Why a test of the dataset could not be made."""
    tried_version = models.PositiveIntegerField(default=0)
    tried_at = models.DateTimeField(null=True)
    """The last attempt, whatever came of it: who waits longest is tried first."""
    attempts = models.PositiveSmallIntegerField(default=0)
    """How many failed in a row."""
    retry_at = models.DateTimeField(null=True)
    """After a failure; a new version of the metadata is tried at once."""

    def __str__(self) -> str:
        return f"{self.dataset} at version {self.metadata_version}"


class BaselineTry(models.Model):
    """A copy whose baseline could not be started: why, and when it is tried again. Gone once it is."""

    copy = models.OneToOneField(DatasetCopy, on_delete=models.CASCADE, related_name="baseline_try", primary_key=True)
    problem = models.TextField()
    attempts = models.PositiveSmallIntegerField(default=0)
    tried_at = models.DateTimeField()
    retry_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "baseline tries"

    def __str__(self) -> str:
        return f"baseline of {self.copy}"


class Watch(models.Model):
    """What a copy that Lakehub only reads held at the last look: the state of each partition, so that changes are seen."""

    copy = models.OneToOneField(DatasetCopy, on_delete=models.CASCADE, related_name="watch", primary_key=True)
    due_at = models.DateTimeField()
    looked_at = models.DateTimeField(null=True)
    seen = models.JSONField(default=dict)

    class Meta:
        verbose_name_plural = "watches"

    def __str__(self) -> str:
        return f"watch of {self.copy}"


class Lane(models.IntegerChoices):
    """Who goes first when much is due; a flood of late partitions stays behind."""

    ASKED = 0, "asked for"
    DUE = 1, "due"
    LATE = 2, "late data"


class Unit(models.Model):
    """(test, copy, data range): the facts of its verdict, and when it is run next. One mutable row that holds now."""

    # Both begin an index below; one of its own would be written with every change of a unit.
    test = models.ForeignKey(Test, on_delete=models.CASCADE, related_name="units", db_index=False)
    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="units", db_index=False)
    start = models.DateTimeField()
    end = models.DateTimeField()

    # the facts of quality.domain.verdicts
    last_pass_at = models.DateTimeField(null=True, blank=True)
    first_fail_at = models.DateTimeField(null=True, blank=True)
    last_fail_at = models.DateTimeField(null=True, blank=True)
    sustain = models.DurationField(null=True, blank=True)
    """The sustain period that was in force at the first failure."""
    latest_outcome = models.CharField(max_length=10, choices=OUTCOMES, blank=True)
    latest_at = models.DateTimeField(null=True, blank=True)
    touched_at = models.DateTimeField(null=True, blank=True)
    """The latest commit that touched the range and that no PASS has read yet."""
    retest_due_at = models.DateTimeField(null=True, blank=True)
    """From here on the retest of such a commit is overdue."""
    waiver = models.CharField(max_length=20, blank=True)
    """false_positive or accepted: a person resolved the failure by force."""
    waived_at = models.DateTimeField(null=True, blank=True)
    affected_from = models.DateTimeField(null=True, blank=True)
    """Freshness: everything from here on is affected."""

    # what is believed now, for lists; the gate judges the facts anew
    verdict = models.CharField(max_length=10, choices=VERDICTS, default=Verdict.UNKNOWN)
    reason = models.CharField(max_length=60, blank=True)
    verdict_at = models.DateTimeField(null=True, blank=True)
    judge_at = models.DateTimeField(null=True, blank=True)
    """When time alone may change the verdict."""

    # what was seen last
    observed = models.FloatField(null=True, blank=True)
    threshold = models.CharField(max_length=60, blank=True)
    detail = models.JSONField(default=dict, blank=True)
    tested_instant = models.CharField(max_length=30, blank=True)
    """The commit that was read."""

    # the schedule
    due_at = models.DateTimeField(null=True, blank=True)
    lane = models.PositiveSmallIntegerField(choices=Lane.choices, default=Lane.DUE)
    attempt = models.PositiveSmallIntegerField(default=0)
    """How many runs of the present failing streak there were."""
    uses = models.CharField(max_length=130, blank=True)
    """The scarcest engine that its test runs on, and where it reads a database the connection: `spark`, `sqlalchemy:ops`."""
    leased_by = models.CharField(max_length=100, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["test", "copy", "start", "end"], name="one_unit_a_range")
        ]
        indexes: ClassVar = [
            models.Index(fields=["copy", "lane", "due_at"], condition=Q(due_at__isnull=False), name="unit_due"),
            models.Index(fields=["judge_at"], condition=Q(judge_at__isnull=False), name="unit_judge"),
            models.Index(fields=["copy", "start", "end"], name="unit_overlap"),
            models.Index(fields=["verdict", "copy"], condition=~Q(verdict="pass"), name="unit_not_passing"),
        ]

    def __str__(self) -> str:
        return f"{self.test} on {self.copy} [{self.start}, {self.end})"


class CopyTurn(models.Model):
    """When a copy was served last, as a number that grows: the one that waits longest goes first."""

    copy = models.OneToOneField(DatasetCopy, on_delete=models.CASCADE, related_name="turn", primary_key=True)
    number = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.copy}: {self.number}"


class TeamTurn(models.Model):
    """When a team was served last, in the same numbers."""

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="turn", primary_key=True)
    number = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.team}: {self.number}"


class Slot(models.Model):
    """One of the claims that may run at once on what is scarce: an engine, or one connection of it."""

    resource = models.CharField(max_length=130)
    number = models.PositiveSmallIntegerField()
    leased_by = models.CharField(max_length=100, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["resource", "number"], name="one_slot_a_number")]

    def __str__(self) -> str:
        return f"{self.resource} {self.number}"


class Result(models.Model):
    """The stored outcome of one execution. Appended, never changed; kept 30 days."""

    unit = models.ForeignKey(Unit, on_delete=models.CASCADE, related_name="results", db_index=False)
    version = models.ForeignKey(TestVersion, on_delete=models.PROTECT, related_name="+")
    outcome = models.CharField(max_length=10, choices=OUTCOMES)
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


class Measurement(models.Model):
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
    """As quality.domain.stored writes it."""
    groups = models.PositiveIntegerField(default=0)
    read_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["copy", "start", "end", "measure"], name="one_answer_a_measure")
        ]
        indexes: ClassVar = [models.Index(fields=["read_at"], name="measurement_by_age")]

    def __str__(self) -> str:
        return f"{self.measure} of {self.copy} [{self.start}, {self.end})"


class ResultHour(models.Model):
    """The results of a unit in one hour, added up; what is left of them after their 30 days."""

    unit = models.ForeignKey(Unit, on_delete=models.CASCADE, related_name="hours", db_index=False)
    hour = models.DateTimeField()
    passed = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    no_data = models.PositiveIntegerField(default=0)
    errors = models.PositiveIntegerField(default=0)
    lowest = models.FloatField(null=True)
    highest = models.FloatField(null=True)
    total = models.FloatField(null=True)
    measured = models.PositiveIntegerField(default=0)
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
    was = models.CharField(max_length=10, choices=VERDICTS)
    becomes = models.CharField(max_length=10, choices=VERDICTS)
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
