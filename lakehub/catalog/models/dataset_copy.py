"""A dataset in a data center, and the rebuild that replaces its copies by others with another partition."""

from __future__ import annotations

from copy import copy as shallow_copy
from typing import ClassVar

from django.db import models
from django.db.models import Q

from lakehub.catalog.models.dataset import GRAINS, Dataset
from lakehub.catalog.models.places import Connection, DataCenter
from lakehub.kernel.partitions import Grain

MAX_COPIES = 32
"""Of one dataset."""
PARTITION_FIELDS = ("partition_column", "grain", "partition_form", "partition_tz")


class RebuildState(models.TextChoices):
    BUILDING = "building"
    SWITCHED = "switched"
    CANCELLED = "cancelled"


class Rebuild(models.Model):
    """Another partition of an ingested dataset: its copies are built beside the present ones, which stay until all are whole."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="rebuilds")
    partition_column = models.CharField(max_length=200, blank=True)
    grain = models.CharField(max_length=10, choices=GRAINS, default=Grain.NONE)
    partition_form = models.CharField(max_length=200, blank=True)
    partition_tz = models.CharField(max_length=64, default="UTC")
    state = models.CharField(max_length=10, choices=RebuildState.choices, default=RebuildState.BUILDING)
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    ended_by = models.CharField(max_length=150, blank=True)
    """Who cancelled it, or let it switch with fewer rows. Empty: it switched by itself."""
    ended_at = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True)
    """Why it does not switch though its copies are loaded."""
    checked_at = models.DateTimeField(null=True, blank=True)
    accepted_by = models.CharField(max_length=150, blank=True)
    """Who said that it may switch though the new tables hold fewer rows."""

    class Meta:
        ordering: ClassVar = ["-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["dataset"], condition=Q(state=RebuildState.BUILDING), name="one_rebuild_a_dataset"
            )
        ]

    def __str__(self) -> str:
        return f"rebuild of {self.dataset} ({self.state})"


class LiveCopies(models.Manager["DatasetCopy"]):
    """Without those that were removed or are being built: what is read, tested, shown and asked about."""

    def get_queryset(self) -> models.QuerySet[DatasetCopy]:
        return super().get_queryset().filter(removed_at=None, rebuild=None)


class DatasetCopy(models.Model):
    """A dataset in one data center. `monitored_from`: the start of the history that the baseline has tested."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="copies")
    data_center = models.ForeignKey(DataCenter, on_delete=models.PROTECT, related_name="copies")
    uri = models.CharField(max_length=600)
    """The table in the lake; empty where the dataset is only monitored."""
    connection = models.ForeignKey(
        Connection, on_delete=models.PROTECT, null=True, blank=True, related_name="monitored_copies"
    )
    """Of a dataset that is only monitored, where this copy lies. None: where the feed reads, for one copy at most."""
    object = models.CharField(max_length=500, blank=True)
    """What the connection calls this copy's table."""
    monitored_from = models.DateTimeField(null=True, blank=True)
    removed_at = models.DateTimeField(null=True, blank=True)
    """Its data center was taken from the dataset, or another copy took its place; results and incidents keep it."""
    rebuild = models.ForeignKey(Rebuild, on_delete=models.CASCADE, null=True, blank=True, related_name="built_copies")
    """What it is being built for: it is loaded, and nothing else, until it takes the place of the present one."""

    objects = LiveCopies()
    with_removed: ClassVar[models.Manager[DatasetCopy]] = models.Manager()

    class Meta:
        ordering: ClassVar = ["dataset__name", "data_center__name"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["dataset", "data_center"],
                condition=Q(removed_at=None, rebuild=None),
                name="one_copy_a_data_center",
            ),
            models.UniqueConstraint(
                fields=["dataset", "connection", "object"],
                condition=Q(removed_at=None),
                name="one_copy_a_monitored_table",
            ),
            models.UniqueConstraint(
                fields=["dataset"],
                condition=Q(uri="", connection=None, removed_at=None),
                name="one_copy_at_the_table_of_the_feed",
            ),
            # Also of copies that were removed: what they left lies there.
            models.UniqueConstraint(fields=["uri"], condition=~Q(uri=""), name="one_copy_a_lake_table"),
            models.CheckConstraint(
                condition=Q(connection=None, object="") | (Q(connection__isnull=False, uri="") & ~Q(object="")),
                name="copy_has_connection_with_object",
            ),
        ]
        verbose_name_plural = "dataset copies"

    def __str__(self) -> str:
        return f"{self.dataset}@{self.data_center}"

    @property
    def layout(self) -> Dataset:
        """The dataset as this copy is partitioned: one that is being built has the partition that the dataset will have."""
        if self.rebuild is None:
            return self.dataset
        dataset = shallow_copy(self.dataset)
        for name in PARTITION_FIELDS:
            setattr(dataset, name, getattr(self.rebuild, name))
        return dataset

    @property
    def source(self) -> tuple[Connection, str] | None:
        """The connection and table that the copy is read from, or loaded from. None: no connection has it."""
        if self.connection is not None:
            return self.connection, self.object
        feed = self.dataset.feed_or_none
        return None if feed is None or feed.connection is None else (feed.connection, feed.object)

    @property
    def source_name(self) -> str:
        """The name of the connection that it is read from, or loaded from; empty where there is none."""
        return self.source[0].name if self.source else ""

    @property
    def source_table(self) -> str:
        return self.source[1] if self.source else ""
