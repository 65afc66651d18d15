"""Tests, their versions, the tables they read, and what was generated or skipped for a dataset."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from lakehub.catalog.models import Dataset
from quality.models.external_runs import ExternalRun as ExternalRun
from quality.models.external_runs import PipelineHook as PipelineHook
from quality.models.rules import ColumnRule as ColumnRule
from quality.models.rules import Metric as Metric


class Category(models.TextChoices):
    FRESHNESS = "freshness"
    COMPLETENESS = "completeness"
    DUPLICATES = "duplicates"
    CONSISTENCY = "consistency", "cross-dc consistency"
    INGESTION = "ingestion"
    OTHERS = "others"


class QualityTest(models.Model):
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
    planned = models.BooleanField(default=True)
    """False: nobody plans its units; they come with what ingestion finds."""
    version = models.ForeignKey("QualityTestVersion", on_delete=models.PROTECT, null=True, related_name="+")
    added_at = models.DateTimeField(null=True, blank=True)
    """When it began to gate a dataset that was monitored already: older partitions wait for their verdict. None: it was
    there from the start."""
    retired_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["dataset", "key"], name="one_test_a_key")]
        indexes: ClassVar = [
            models.Index(fields=["dataset"], condition=Q(retired_at=None), name="test_live_of_dataset")
        ]

    def __str__(self) -> str:
        return f"{self.dataset}: {self.title}"


class QualityTestVersion(models.Model):
    """What a test asks, from `created_at` until the next version; `because` says which metadata made it."""

    __test__ = False

    test = models.ForeignKey(QualityTest, on_delete=models.CASCADE, related_name="versions")
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


class TableReference(models.Model):
    """A name by which the current version reads more than the tested partition: a dataset's, `upstream`, or `this` where it
    looks back. So whom a commit concerns is found by an index."""

    __test__ = False

    test = models.ForeignKey(QualityTest, on_delete=models.CASCADE, related_name="reads", db_index=False)
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


class GenerationStatus(models.Model):
    """For which version of its metadata a dataset's tests were generated; behind the dataset's own, they are again."""

    dataset = models.OneToOneField(Dataset, on_delete=models.CASCADE, related_name="coverage", primary_key=True)
    metadata_version = models.PositiveIntegerField(default=0)
    """0: for none yet."""
    generated_at = models.DateTimeField(null=True)
    problem = models.TextField(blank=True)
    """Why a test of the dataset could not be made."""
    attempted_version = models.PositiveIntegerField(default=0)
    attempted_at = models.DateTimeField(null=True)
    """The last attempt, whatever came of it: who waits longest is tried first."""
    attempts = models.PositiveSmallIntegerField(default=0)
    """How many failed in a row."""
    retry_at = models.DateTimeField(null=True)
    """After a failure; a new version of the metadata is tried at once."""

    def __str__(self) -> str:
        return f"{self.dataset} at version {self.metadata_version}"
