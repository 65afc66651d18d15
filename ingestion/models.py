"""What moves data into the lake, and the facts that moving it leaves: runs, commits, touched partitions, findings."""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

from django.db import models
from django.db.models import Q

from lakehub.catalog.models import DatasetCopy


class CopyLease(models.Model):
    """Who may write a copy now. Held around tag and write; times are the database's clock."""

    copy = models.OneToOneField(DatasetCopy, on_delete=models.CASCADE, related_name="lease", primary_key=True)
    holder = models.CharField(max_length=100, blank=True)
    until = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.copy}: {self.holder or 'free'}"


class JobKind(models.TextChoices):
    BOOTSTRAP = "bootstrap"
    INCREMENTAL = "incremental"
    BACKFILL = "backfill"
    DELETE = "delete"
    DROP = "drop"


class JobState(models.TextChoices):
    QUEUED = "queued"
    WAITING = "waiting"
    """An input of it is blocked by the gate."""
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobRun(models.Model):
    """One Spark job on one copy: asked for, claimed with a lease, ended with a report or an error."""

    key = models.UUIDField(default=uuid4, unique=True, editable=False)
    """What the lake knows the run by: a commit carries it, so the same run never commits twice."""
    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="runs")
    kind = models.CharField(max_length=16, choices=JobKind.choices)
    params = models.JSONField(default=dict, blank=True)
    """What this kind needs, such as {"partitions": ["2026-11-16"]}."""
    asked_by = models.CharField(max_length=150, blank=True)
    state = models.CharField(max_length=16, choices=JobState.choices, default=JobState.QUEUED)
    due_at = models.DateTimeField()
    attempt = models.PositiveSmallIntegerField(default=0)
    leased_by = models.CharField(max_length=100, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    """The database's clock, not the instance's."""
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    progress = models.JSONField(default=dict, blank=True)
    """While it runs: the fields of JobProgress, as told last; empty until then."""
    progress_at = models.DateTimeField(null=True, blank=True)
    report = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    waits_since = models.DateTimeField(null=True, blank=True)
    """When the gate blocked an input of it first; it is asked again at `due_at`, or when an incident of that resolves."""
    regardless_by = models.CharField(max_length=150, blank=True)
    """Who started it without asking the gate."""
    regardless_why = models.TextField(blank=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["due_at"], condition=Q(state="waiting"), name="jobrun_waiting"),
            models.Index(fields=["due_at"], condition=Q(state="queued"), name="jobrun_due"),
            models.Index(fields=["leased_until"], condition=Q(state="running"), name="jobrun_leased"),
            models.Index(fields=["copy", "-id"], name="jobrun_of_copy"),
            models.Index(fields=["copy", "kind", "-id"], name="jobrun_newest"),
            models.Index(fields=["state"], name="jobrun_at_work"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["copy", "kind"],
                condition=Q(kind="incremental", state__in=["queued", "waiting", "running"]),
                name="one_incremental_at_a_time",
            ),
            models.UniqueConstraint(fields=["copy"], condition=Q(state="running"), name="one_running_job_a_copy"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.copy} ({self.state})"


class BlockedInput(models.Model):
    """Why a run waits: a range of a copy that it reads, and what the gate said of it last."""

    run = models.ForeignKey(JobRun, on_delete=models.CASCADE, related_name="blocked_by")
    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="+")
    start = models.DateTimeField()
    end = models.DateTimeField()
    verdict = models.CharField(max_length=10)
    reason = models.TextField()
    incidents = models.JSONField(default=list)
    """Their numbers."""
    retry_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["pk"]

    def __str__(self) -> str:
        return f"{self.copy} for {self.run}"


class Commit(models.Model):
    """A commit of the lake's own timeline. The counts are known for the commits that our jobs made."""

    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="commits")
    run = models.ForeignKey(JobRun, on_delete=models.SET_NULL, null=True, blank=True, related_name="commits")
    instant = models.CharField(max_length=30)
    """The requested time, as Hudi writes it; rows carry it."""
    completed_at = models.DateTimeField()
    operation = models.CharField(max_length=30)
    checkpoint = models.JSONField(null=True, blank=True)
    read = models.BigIntegerField(null=True)
    applied = models.BigIntegerField(null=True)
    superseded = models.BigIntegerField(null=True)
    redelivered = models.BigIntegerField(null=True)
    errors = models.BigIntegerField(null=True)
    inserts = models.BigIntegerField(default=0)
    updates = models.BigIntegerField(default=0)
    deletes = models.BigIntegerField(default=0)
    source_committed_upto = models.DateTimeField(null=True, blank=True)
    """The newest source commit that this commit made queryable."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["copy", "instant"], name="commit_once")]
        indexes: ClassVar = [models.Index(fields=["copy", "-completed_at"], name="commit_newest_of_copy")]

    def __str__(self) -> str:
        return f"{self.copy} {self.instant}"


class TouchedPartition(models.Model):
    """A partition that a commit changed. Quality claims it (`claimed_at`) to test it again."""

    commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="touched")
    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="+")
    start = models.DateTimeField()
    end = models.DateTimeField()
    rows = models.BigIntegerField(default=0)
    """Changed: inserted, updated or deleted."""
    inserts = models.BigIntegerField(default=0)
    deletes = models.BigIntegerField(default=0)
    claimed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["commit", "start"], name="touched_once_a_commit")]
        indexes: ClassVar = [models.Index(fields=["id"], condition=Q(claimed_at=None), name="touched_unclaimed")]

    def __str__(self) -> str:
        return f"[{self.start}, {self.end}) by {self.commit}"


class Finding(models.Model):
    """Something that ingestion saw: rows not accounted for, an incompatible schema, a job that keeps failing."""

    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="findings")
    kind = models.CharField(max_length=40)
    start = models.DateTimeField()
    end = models.DateTimeField()
    detail = models.JSONField(default=dict)
    raised_at = models.DateTimeField()
    cleared_at = models.DateTimeField(null=True, blank=True)
    raise_claimed_at = models.DateTimeField(null=True, blank=True)
    clear_claimed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["copy", "kind", "start", "end"], condition=Q(cleared_at=None), name="one_open_finding_a_range"
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["id"], condition=Q(raise_claimed_at=None), name="finding_raise_unclaimed"),
            models.Index(
                fields=["id"],
                condition=Q(cleared_at__isnull=False, clear_claimed_at=None),
                name="finding_clear_unclaimed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} on {self.copy}"
