"""The clusters of HBase that keep the Global Index, and how many requests each dataset and each job may send there."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from ingestion.models.runs import JobRun
from lakehub.accounts.models import SLUG
from lakehub.catalog.models import DataCenter, DatasetCopy
from lakehub.db.encrypted_fields import EncryptedTextField


class IndexCluster(models.Model):
    """A cluster of HBase: the Global Index of all copies of a data center whose feed has the index `hbase`."""

    name = models.CharField(max_length=63, unique=True, validators=[SLUG])
    data_center = models.OneToOneField(DataCenter, on_delete=models.PROTECT, related_name="index_cluster")
    url = EncryptedTextField()
    """`ingestion.domain.index_cluster.address` reads it."""
    qps_per_server = models.PositiveIntegerField(null=True, blank=True)
    """Requests a second that one region server was measured to answer; null: it was not benchmarked, and no job looks up keys there."""
    benchmarked_at = models.DateTimeField(null=True, blank=True)
    indexes_lost_at = models.DateTimeField(null=True, blank=True)
    """When it was moved, or a person said that it has lost its indexes: those that were made before are to be made again. Null: it never was."""

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class IndexShare(models.Model):
    """What a copy's table in the index may use of its cluster. Fractions are parts of `ingestion.domain.index_cluster.fractions.WHOLE`."""

    copy = models.OneToOneField(DatasetCopy, on_delete=models.CASCADE, related_name="index_share", primary_key=True)
    cluster = models.ForeignKey(IndexCluster, on_delete=models.CASCADE, related_name="shares")
    rows = models.BigIntegerField(default=0)
    """Of the table in the lake: counted when its index was made, and followed commit by commit since."""
    servers = models.PositiveIntegerField(default=1)
    """Region servers that host its regions, as a job saw them last."""
    fraction_by_hand = models.BigIntegerField(null=True, blank=True)
    """Set by a person; null: by the rule."""
    fraction = models.BigIntegerField(default=0)
    """What holds."""
    requests = models.BigIntegerField(default=0)
    """All that its jobs have sent so far: keys that were asked for, entries that were written or removed."""
    used_requests = models.BigIntegerField(default=0)
    """Those of the last job that sent any."""
    used_seconds = models.FloatField(default=0.0)
    """How long that was busy with them."""
    used_at = models.DateTimeField(null=True, blank=True)
    """When that had ended; null: none has sent any yet."""

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(rows__gte=0, servers__gte=1, fraction__gte=0), name="index_share_counts"
            ),
            models.CheckConstraint(
                condition=Q(fraction_by_hand=None) | Q(fraction_by_hand__gt=0), name="index_share_by_hand"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.copy} on {self.cluster}"


class IndexAllowance(models.Model):
    """The part of its copy's share that a job has while it works, or waits for. Times are the database's clock."""

    run = models.OneToOneField(JobRun, on_delete=models.CASCADE, related_name="index_allowance", primary_key=True)
    share = models.ForeignKey(IndexShare, on_delete=models.CASCADE, related_name="allowances")
    fraction = models.BigIntegerField(default=0)
    """What counts as taken. 0: it waits until the others have given back what is above their part."""
    told_fraction = models.BigIntegerField(default=0)
    """What the job was told last. Where that is less, `fraction` follows with the next renewal: the job has slowed down by then."""
    leased_by = models.CharField(max_length=100)
    leased_until = models.DateTimeField()
    asked_at = models.DateTimeField()
    """When it asked for it first."""

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(told_fraction__gte=0, fraction__gte=models.F("told_fraction")), name="index_allowance_told"
            )
        ]

    def __str__(self) -> str:
        return f"{self.run}: {self.fraction}"
