"""Backfills of modelled tables: many partitions, made anew chunk by chunk."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from ingestion.models.runs import JobRun
from lakehub.catalog.models import DatasetCopy


class BackfillState(models.TextChoices):
    RUNNING = "running"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """All chunks have ended, and some were given up: these can be tried again."""
    CANCELLED = "cancelled"


class ChunkState(models.TextChoices):
    WAITING = "waiting"
    RUNNING = "running"
    """Its run waits in the queue, is at work, or is tried again."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Backfill(models.Model):
    """Partitions of a copy that are made anew, chunk by chunk, in order. One at a time for each copy."""

    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="backfills")
    first = models.TextField()
    """The names of the first and the last of its partitions."""
    last = models.TextField()
    chunk_size = models.PositiveIntegerField()
    """Partitions of a chunk, at most."""
    state = models.CharField(max_length=16, choices=BackfillState.choices, default=BackfillState.RUNNING)
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    resumed_at = models.DateTimeField()
    """When it was asked for, resumed, or tried again last."""
    ended_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)
    """Why it has ended otherwise than done."""
    noted = models.JSONField(default=dict, blank=True)
    """How far it was, and what had happened at the incidents of its dataset, when it was noted there last; the app of incidents writes it."""

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["copy"], condition=Q(ended_at=None), name="one_backfill_a_copy")
        ]
        indexes: ClassVar = [
            models.Index(fields=["copy", "-id"], name="backfill_of_copy"),
            models.Index(fields=["id"], condition=Q(ended_at=None), name="backfill_open"),
        ]

    def __str__(self) -> str:
        return f"backfill {self.pk} of {self.copy} ({self.state})"


class BackfillChunk(models.Model):
    """Some partitions of a backfill, which one run makes anew in one commit."""

    backfill = models.ForeignKey(Backfill, on_delete=models.CASCADE, related_name="chunks")
    number = models.PositiveIntegerField()
    """From 1, in the order of the partitions."""
    partitions = models.JSONField()
    """Their names."""
    size = models.PositiveIntegerField()
    """How many they are."""
    state = models.CharField(max_length=16, choices=ChunkState.choices, default=ChunkState.WAITING)
    run = models.ForeignKey(JobRun, on_delete=models.SET_NULL, null=True, blank=True, related_name="chunks")
    """The newest; it may be older than what is kept of runs."""
    began_at = models.DateTimeField(null=True, blank=True)
    """When that was asked for."""
    ended_at = models.DateTimeField(null=True, blank=True)
    rows = models.BigIntegerField(default=0)
    """New, changed and deleted."""
    error = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["backfill", "number"], name="chunk_once")]
        indexes: ClassVar = [
            models.Index(fields=["id"], condition=Q(state="running"), name="chunk_at_work"),
            models.Index(fields=["backfill", "number"], condition=Q(state="waiting"), name="chunk_waiting"),
            models.Index(fields=["backfill", "-ended_at"], condition=Q(ended_at__isnull=False), name="chunk_ended"),
        ]

    @property
    def last(self) -> str:
        """The name of its last partition."""
        return str(self.partitions[-1])

    def __str__(self) -> str:
        return f"chunk {self.number} of {self.backfill}"
