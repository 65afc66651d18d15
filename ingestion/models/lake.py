"""What moving data into the lake leaves: commits, touched partitions, how far readers are, and findings."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from ingestion.models.runs import JobRun
from lakehub.catalog.models import DatasetCopy


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
    schema_version = models.PositiveIntegerField(null=True, blank=True)
    """Of a captured copy: the number of the newest version of its subject that the columns of the table follow since. None: it says nothing of that."""

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
