"""What moves data into the lake, and the facts that moving it leaves: runs, commits, touched partitions, findings;
and the schemas of change events."""

from __future__ import annotations

from typing import ClassVar
from uuid import uuid4

from django.db import models
from django.db.models import Q

from lakehub.accounts.models import Team
from lakehub.catalog.models import Connection, DatasetCopy, Feed


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
    DROP = "drop"
    VERIFY_INDEX = "verify_index"
    """Compares what the index says with the rows of the table, and changes nothing."""
    REBUILD_INDEX = "rebuild_index"
    """Makes what the index keeps anew."""
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
    leased_by = models.CharField(max_length=100)
    asked_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    """When it asked last, while it waits."""
    leased_until = models.DateTimeField(null=True, blank=True)
    """None: it waits."""

    class Meta:
        indexes: ClassVar = [models.Index(fields=["connection", "asked_at"], name="places_of_connection")]

    def __str__(self) -> str:
        return f"{self.run} at {self.connection}"


class SourceQuota(models.Model):
    """Of a connection with a limit of rows per second: until when what was read there is paid for, by the database's clock, at the rate of then."""

    connection = models.OneToOneField(Connection, on_delete=models.CASCADE, related_name="+", primary_key=True)
    paid_until = models.DateTimeField()
    rows_per_s = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.connection}: {self.paid_until}"


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
    is_part_of_load = models.BooleanField(default=False)
    """Of a first load in several commits, and not the last: the table was not whole yet."""
    touched_of_part = models.JSONField(null=True, blank=True)
    """What it touched as such a part, until the load is whole: [start, end, inserts, updates, deletes] of each partition (ingestion.lake.touches.load_parts)."""
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
    touched_count = models.PositiveIntegerField(null=True, blank=True)
    """Partitions. None: it was not counted, and each has a row."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["copy", "instant"], name="commit_once")]
        indexes: ClassVar = [models.Index(fields=["copy", "-completed_at"], name="commit_newest_of_copy")]

    def __str__(self) -> str:
        return f"{self.copy} {self.instant}"


class TouchedPartition(models.Model):
    """A partition that a commit changed. Quality claims it (`claimed_at`) to test it again.

    Batches of a follow run share a row for an hour (ingestion.lake.touches.follow_batches): `commit` is the latest of them then.
    """

    commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="touched")
    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="+")
    start = models.DateTimeField()
    end = models.DateTimeField()
    rows = models.BigIntegerField(default=0)
    """Changed: inserted, updated or deleted."""
    inserts = models.BigIntegerField(default=0)
    deletes = models.BigIntegerField(default=0)
    claimed_at = models.DateTimeField(null=True, blank=True)
    last_claimed_at = models.DateTimeField(null=True, blank=True)
    """Also where a later batch has touched it again."""
    merged_since = models.DateTimeField(null=True, blank=True)
    """When the first of the batches was completed whose changes are added up here. None: it is of one commit."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["commit", "start"], name="touched_once_a_commit")]
        indexes: ClassVar = [
            models.Index(fields=["copy", "id"], condition=Q(claimed_at=None), name="touched_unclaimed"),
            models.Index(fields=["copy", "start"], name="touched_of_copy"),
            models.Index(fields=["copy", "-last_claimed_at"], name="touched_last_claim"),
        ]

    def __str__(self) -> str:
        return f"[{self.start}, {self.end}) by {self.commit}"


class ReaderPosition(models.Model):
    """How far somebody is who reads the increments of a copy. While it lives, what it has not read is kept within a bound."""

    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="readers")
    name = models.CharField(max_length=100)
    position = models.CharField(max_length=30)
    """The completion instant of the newest commit that it has read."""
    seen_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["copy", "name"], name="reader_once_a_copy")]

    def __str__(self) -> str:
        return f"{self.name} of {self.copy}"


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


class SchemaSubject(models.Model):
    """A name under which versions of an Avro schema follow each other, such as `trips-value` for the events of a topic."""

    name = models.CharField(max_length=200, unique=True)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="+")
    compatibility = models.CharField(max_length=20)
    """Which version may follow (`ingestion.domain.avro.compatibility`)."""

    def __str__(self) -> str:
        return self.name


class SchemaVersion(models.Model):
    """One version. Its key is the id that messages carry; nothing of it changes but whether it is deprecated."""

    subject = models.ForeignKey(SchemaSubject, on_delete=models.CASCADE, related_name="versions")
    version = models.PositiveIntegerField()
    """Counts from 1 within the subject."""
    text = models.TextField()
    """As it was registered."""
    digest = models.CharField(max_length=64)
    """SHA-256 of the schema, however it is laid out: the same schema is registered once."""
    registered_by = models.CharField(max_length=150)
    registered_at = models.DateTimeField()
    deprecated_at = models.DateTimeField(null=True, blank=True)
    deprecated_why = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["subject", "version"], name="schema_version_once"),
            models.UniqueConstraint(fields=["subject", "digest"], name="schema_once_a_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} {self.version}"


class TapServer(models.Model):
    """A server whose log is read for all datasets that are captured from it, by one process at a time."""

    address = models.CharField(max_length=300, unique=True)
    """`host:port`, as connections name it; of a Kafka `kafka:host:port,host:port`."""
    leased_by = models.CharField(max_length=100, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    """The database's clock, not the instance's."""
    captured = models.PositiveIntegerField(default=0)
    """How many datasets, those that are stopped left out."""
    position = models.TextField(blank=True)
    """The GTID of the last transaction that was taken, as it was told last: the changelog has the one that holds."""
    event_at = models.DateTimeField(null=True, blank=True)
    """When that was committed there."""
    caught_up_at = models.DateTimeField(null=True, blank=True)
    """When the tap had taken all that there was."""
    seen_at = models.DateTimeField(null=True, blank=True)
    """When the tap heard from the server last, as it was told last."""
    error = models.TextField(blank=True)
    """Why it is not tapped now, and what to do. Empty: it is, or nobody has tried yet."""
    warnings = models.JSONField(default=list, blank=True)
    """What may become a problem: texts for people."""

    class Meta:
        ordering: ClassVar = ["address"]

    def __str__(self) -> str:
        return self.address


class Capture(models.Model):
    """A dataset whose changes are taken from the binlog of its server to a topic of the changelog."""

    feed = models.OneToOneField(Feed, on_delete=models.CASCADE, related_name="capture")
    topic = models.CharField(max_length=200, unique=True)
    """Of the changelog, and the subject of its schemas."""
    load = models.PositiveIntegerField(default=1)
    """Counts how often the dataset was loaded whole: a reload begins another one."""
    load_run = models.UUIDField(null=True, blank=True, editable=False)
    """The key of the run that began this load; null: the dataset began with it."""
    load_upto_run = models.PositiveBigIntegerField(default=0, editable=False)
    """The newest run when this load began: whoever asked for a load before has this one."""
    captured_load = models.PositiveIntegerField(default=0)
    """The load from whose beginning on changes are captured. Less than `load`: the tap has not begun that one yet."""
    captured_from = models.TextField(blank=True)
    """The GTID after which, or the offsets of the topic from which on, changes of that load are in the changelog."""
    changelog_from = models.JSONField(default=dict, blank=True)
    """By topic of the changelog and partition, the offset from which on changes of that load are there, where nothing else says so: a source without rows to read."""
    captured_table = models.CharField(max_length=1000, blank=True)
    """`host:port/database.table`, or a cluster and a topic: what is captured since then. Another one needs another load."""
    captured_columns = models.JSONField(default=dict, blank=True)
    """Which of its columns are left out, hashed or masked since then (`HiddenColumns.as_json`). Others need another load."""
    column_renames = models.JSONField(default=dict, blank=True)
    """Since then, which columns have got another name, and in which transactions (`RenameNotes`)."""
    stopped_load = models.PositiveIntegerField(default=0)
    """The load in which the capture was stopped; it is stopped as long as that is `load`."""
    stopped_why = models.TextField(blank=True)
    """Why, and what to do."""
    incomplete_copies = models.JSONField(default=list, blank=True)
    """The copies of the dataset that were not loaded whole since the capture was stopped: changes are missing there."""

    def __str__(self) -> str:
        return self.topic

    @property
    def is_captured(self) -> bool:
        """What is read from the table now may be merged with the changes of the topic."""
        return self.captured_load == self.load and not self.is_stopped

    @property
    def is_stopped(self) -> bool:
        return self.stopped_load == self.load
