"""A pipeline that was registered, by its files."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from ingestion.models.runs import JobRun
from lakehub.catalog.models import Dataset, DatasetCopy


class Pipeline(models.Model):
    """What makes the rows of `dataset`, whose feed is of the kind `pipeline`. `files`: by name their texts, as they were registered last."""

    dataset = models.OneToOneField(Dataset, on_delete=models.CASCADE, related_name="pipeline", primary_key=True)
    files = models.JSONField()
    on_commit = models.BooleanField(default=False)
    """It runs as soon as an input has a commit."""
    transformer_digests = models.JSONField(default=dict)
    """By the code of a transformer, its name and the jars that it needs, the digest of its files as they were when the pipeline was registered; without those that could not be read there."""
    changed_by = models.CharField(max_length=150)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.dataset)


class BatchOutcome(models.TextChoices):
    PASSED = "passed"
    """A later run has made rows that pass."""
    PUBLISHED = "published"
    """A person has let the rows be committed all the same."""
    DROPPED = "dropped"
    """A person has left the changes out."""


class RefusedBatch(models.Model):
    """Rows that a run of a pipeline has made, and that did not pass its audits: of each kind of run the newest, of backfills that of the same partitions, until that is over."""

    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="refused_batches")
    kind = models.CharField(max_length=16)
    """Of the run."""
    subject = models.CharField(max_length=64, blank=True)
    """Of a backfill which partitions it was to make, as a digest."""
    run = models.ForeignKey(JobRun, on_delete=models.CASCADE, related_name="refused_batches")
    audits = models.JSONField()
    """A list of `ingestion.spark.etl.audits.Refusal`, without rows."""
    samples = models.JSONField(default=list)
    """Of each audit some rows that are the reason: `columns` and `rows`. These are rows of data: whoever may see the run may not see them."""
    kept_at = models.TextField()
    """The URI of the folder in which the rows that were made lie."""
    position = models.JSONField(default=dict)
    """By input, up to where the changes go that they were made from; empty: the run follows none."""
    refused_at = models.DateTimeField()
    """The first time."""
    outcome = models.CharField(max_length=16, choices=BatchOutcome.choices, blank=True)
    decided_by = models.CharField(max_length=150, blank=True)
    reason = models.TextField(blank=True)
    decision_run = models.ForeignKey(JobRun, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    """The run that does what was decided."""
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["copy", "kind", "subject"], condition=Q(ended_at=None), name="one_open_refused_batch"
            )
        ]
        indexes: ClassVar = [models.Index(fields=["copy", "-id"], name="refusedbatch_of_copy")]

    def __str__(self) -> str:
        return f"refused {self.kind} of {self.copy}"
