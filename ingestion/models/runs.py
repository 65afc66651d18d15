"""Job runs: who asked for them, whose they are, what they wait for, and what they may use of a source."""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

from django.db import models
from django.db.models import Q

from lakehub.catalog.models import Connection, DatasetCopy


class CopyLease(models.Model):
    """Who may write a copy now: a run while it writes, or all the time where it is alone on the copy. Times are the database's clock."""

    copy = models.OneToOneField(DatasetCopy, on_delete=models.CASCADE, related_name="lease", primary_key=True)
    holder = models.CharField(max_length=100, blank=True)
    until = models.DateTimeField(null=True, blank=True)
    is_shared = models.BooleanField(default=False)
    """Whoever holds it shares the copy with others, and writes now; otherwise it is alone on the copy."""

    def __str__(self) -> str:
        return f"{self.copy}: {self.holder or 'free'}"


class JobKind(models.TextChoices):
    BOOTSTRAP = "bootstrap"
    INCREMENTAL = "incremental"
    BACKFILL = "backfill"
    DELETE = "delete"
    REPLAY = "replay"
    """Rejected rows once more, with the values of its ReplayRequest."""
    CLUSTER = "cluster"
    """Puts small files together; no row changes."""
    SET_POSITION = "set_position"
    """Puts the copy of a captured dataset elsewhere in its changelog."""
    DROP = "drop"
    VERIFY_INDEX = "verify_index"
    """Compares what the index says with the rows of the table; with `repairs` it puts single entries right."""
    REBUILD_INDEX = "rebuild_index"
    """Makes what the index keeps anew."""
    DROP_INDEX = "drop_index"
    """Removes the table of HBase that an index has left."""
    REPLICATE = "replicate"
    """Makes a replicated copy equal to the one that it is made from."""
    FOLLOW = "follow"
    """Looks at the source of a loaded copy again and again; each batch that it finds is an incremental job of Spark."""


class JobState(models.TextChoices):
    QUEUED = "queued"
    WAITING = "waiting"
    """An input of it is blocked by the gate."""
    PAUSED = "paused"
    """Ingestion of its dataset is paused by hand: it keeps its position, and is queued again when that is resumed."""
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobRun(models.Model):
    """One Spark job on one copy, or the following of it: asked for, claimed with a lease, ended with a report or an error."""

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
    """When it was first begun: a load in several goes has read everything that was there before."""
    ended_at = models.DateTimeField(null=True, blank=True)
    progress = models.JSONField(default=dict, blank=True)
    """While it runs: the fields of JobProgress, as told last; empty until then. Of a follow run: the fields of FollowSums."""
    progress_at = models.DateTimeField(null=True, blank=True)
    report = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    waits_since = models.DateTimeField(null=True, blank=True)
    """When the gate blocked an input of it first; it is asked again at `due_at`, or when an incident of that resolves. Of one that was put off since
    the index cluster did not answer: when that was first."""
    regardless_by = models.CharField(max_length=150, blank=True)
    """Who started it without asking the gate."""
    regardless_why = models.TextField(blank=True)
    owes_lineage = models.BooleanField(default=False)
    """Its events are to be sent to the receiver of lineage once it has ended."""

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["ended_at", "id"], condition=Q(owes_lineage=True), name="jobrun_owes_lineage"),
            models.Index(fields=["due_at"], condition=Q(state="waiting"), name="jobrun_waiting"),
            models.Index(fields=["due_at"], condition=Q(state="queued"), name="jobrun_due"),
            models.Index(fields=["leased_until"], condition=Q(state="running"), name="jobrun_leased"),
            models.Index(fields=["copy", "-id"], name="jobrun_of_copy"),
            models.Index(fields=["copy", "kind", "-id"], name="jobrun_newest"),
            models.Index(fields=["state"], name="jobrun_at_work"),
            models.Index(
                fields=["copy", "ended_at"], condition=Q(kind="backfill", state="succeeded"), name="jobrun_backfilled"
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["copy", "kind"],
                condition=Q(kind="incremental", state__in=["queued", "waiting", "paused", "running"]),
                name="one_incremental_at_a_time",
            ),
            models.UniqueConstraint(
                fields=["copy"],
                condition=Q(state="running", kind__in=("bootstrap", "drop")),
                name="one_exclusive_job_a_copy",
            ),
            models.UniqueConstraint(
                fields=["copy"],
                condition=Q(kind="replicate", state__in=["queued", "waiting", "paused", "running"]),
                name="one_replication_a_copy",
            ),
            models.UniqueConstraint(
                fields=["copy"],
                condition=Q(kind="follow", state__in=["queued", "waiting", "paused", "running"]),
                name="one_follow_run_a_copy",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.copy} ({self.state})"


class ReplayRequest(models.Model):
    """Which rows of the error table a replay tries again, and with which values. These are rows of data: whoever may see the run may not see them."""

    run = models.OneToOneField(JobRun, on_delete=models.CASCADE, related_name="replay_request", primary_key=True)
    keys = models.JSONField(default=list)
    """The `error_key` of each; empty: all open rows of one column and kind of reason."""
    column = models.TextField(blank=True)
    reason_kind = models.TextField(blank=True)
    fixes = models.JSONField(default=dict)
    """By `error_key` the values, by column, that take the place of the row's own."""
    values = models.JSONField(default=dict)
    """Those for rows that have no fix."""

    def __str__(self) -> str:
        return f"rows of {self.run}"


class SourcePlace(models.Model):
    """A run that reads a connection with a limit, or waits to. Times are the database's clock."""

    run = models.OneToOneField(JobRun, on_delete=models.CASCADE, related_name="source_place", primary_key=True)
    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="+")
    server = models.CharField(max_length=1000, default="", editable=False)
    """Of the connection (`source_limits.server_read_by`): all that read it count."""
    leased_by = models.CharField(max_length=100)
    asked_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    """When it asked last, while it waits."""
    leased_until = models.DateTimeField(null=True, blank=True)
    """None: it waits."""
    connections = models.PositiveSmallIntegerField(default=1)
    """So many it may open at once: places of the connection."""

    class Meta:
        indexes: ClassVar = [models.Index(fields=["server", "asked_at"], name="places_of_server")]

    def __str__(self) -> str:
        return f"{self.run} at {self.connection}"


class SourceQuota(models.Model):
    """Of a server whose connections have limits: until when what was read there is paid for, by the database's clock, at the rate of then."""

    server = models.CharField(max_length=1000, primary_key=True)
    paid_until = models.DateTimeField()
    rows_per_s = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.server}: {self.paid_until}"


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
