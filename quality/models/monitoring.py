"""How far the baseline of a copy has come, and what change polling last saw of its partitions."""

from __future__ import annotations

from django.db import models

from lakehub.catalog.models import DatasetCopy
from quality.models.external_runs import ExternalRun as ExternalRun
from quality.models.external_runs import PipelineHook as PipelineHook
from quality.models.rules import ColumnRule as ColumnRule
from quality.models.rules import Metric as Metric


class BaselineAttempt(models.Model):
    """A copy whose baseline could not be started: why, and when it is tried again. Gone once it is."""

    copy = models.OneToOneField(DatasetCopy, on_delete=models.CASCADE, related_name="baseline_try", primary_key=True)
    problem = models.TextField()
    attempts = models.PositiveSmallIntegerField(default=0)
    attempted_at = models.DateTimeField()
    retry_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "baseline tries"

    def __str__(self) -> str:
        return f"baseline of {self.copy}"


class ChangePoll(models.Model):
    """What a copy that Lakehub only reads held at the last look: the state of each partition, so that changes are seen."""

    copy = models.OneToOneField(DatasetCopy, on_delete=models.CASCADE, related_name="watch", primary_key=True)
    due_at = models.DateTimeField()
    polled_at = models.DateTimeField(null=True)
    partition_states = models.JSONField(default=dict)

    class Meta:
        verbose_name_plural = "watches"

    def __str__(self) -> str:
        return f"watch of {self.copy}"
