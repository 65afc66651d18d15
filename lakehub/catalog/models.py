"""What data there is: datasets, their copies in the data centers, where they come from and what they feed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar
from zoneinfo import ZoneInfo

from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import Q

from lakehub.accounts.models import SLUG, Team
from lakehub.catalog.encrypted_fields import EncryptedTextField
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.storages import STORAGES, Storage
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, partition_name
from lakehub.kernel.registry import UnknownPlugin

TIERS = range(6)


class DataCenter(models.Model):
    """A place with a lake of its own. `lake_uri` is a URI such as file:///lake/dc1."""

    name = models.CharField(max_length=63, unique=True, validators=[SLUG])
    lake_uri = models.CharField(max_length=500)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class Connection(models.Model):
    """A place that data is read from; `plugin` names its storage, and the source that reads its rows."""

    name = models.CharField(max_length=63, unique=True, validators=[SLUG])
    plugin = models.CharField(max_length=30)
    url = EncryptedTextField()
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="connections")

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def storage(self) -> Storage:
        """Raises MetadataUnavailable where the package that brings it is not installed (any more)."""
        try:
            return STORAGES.get(self.plugin)(self.url)
        except UnknownPlugin as unknown:
            raise MetadataUnavailable(f"The connection {self.name} cannot be read: {unknown}") from unknown


class DatasetKind(models.TextChoices):
    APPEND_ONLY = "append-only"
    APPEND_PLUS_UPDATE = "append-plus-update"


GRAINS = [(grain.value, grain.value) for grain in Grain]


class Dataset(models.Model):
    """A table that people care about, whatever its storage. Not onboarded any more: `offboarded_at` is set."""

    name = models.CharField(max_length=63, unique=True, validators=[SLUG])
    description = models.TextField(blank=True)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="datasets")
    tier = models.PositiveSmallIntegerField(validators=[MaxValueValidator(5)])
    kind = models.CharField(max_length=20, choices=DatasetKind.choices)
    ingested = models.BooleanField(default=True)
    """False: monitored where it lies; its storage reads its metadata."""
    columns = models.JSONField(default=list)
    """[{name, type, nullable}] as the storage last saw them."""
    primary_key = models.JSONField(default=list, blank=True)
    """Columns that ought to be unique: what the duplicates test counts. Empty: unknown."""
    record_key = models.JSONField(default=list, blank=True)
    """Columns that name a record in the lake; the primary key, or a surrogate."""
    reference_key = models.CharField(max_length=100, blank=True)
    """The column whose greater value wins when a record changes."""
    partition_column = models.CharField(max_length=100, blank=True)
    grain = models.CharField(max_length=10, choices=GRAINS, default=Grain.NONE)
    partition_tz = models.CharField(max_length=64, default="UTC")
    event_time = models.CharField(max_length=100, blank=True)
    freshness_sla = models.DurationField(null=True, blank=True)
    """None: the tier's."""
    overrides = models.JSONField(default=dict, blank=True)
    """SLAs of this dataset in place of its tier's, by the names of quality.domain.slas."""
    grace_until = models.DateTimeField(null=True, blank=True)
    """Nobody is paged before; `lakehub.catalog.datasets.grace_periods` also keeps when that was so."""
    onboarded_at = models.DateTimeField()
    offboarded_at = models.DateTimeField(null=True, blank=True)
    metadata_version = models.PositiveIntegerField(default=1)
    """Grows with each change of tier, keys or schema; tests are generated for one version."""
    missing_since = models.DateTimeField(null=True, blank=True)
    """Since when the daily look found its table gone; off-boarded when that lasts. A look that could not reach it begins anew."""
    missing_checks = models.PositiveIntegerField(default=0)
    """So many looks have found it gone since then, each of them."""

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(tier__lte=5), name="tier_is_0_to_5"),
            models.CheckConstraint(
                condition=Q(grain=Grain.NONE) | ~Q(partition_column=""), name="grain_needs_partition_column"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["tier", "name"], condition=Q(offboarded_at=None), name="dataset_live_by_tier")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.partition_tz)

    @property
    def partition_grain(self) -> Grain:
        return Grain(self.grain)

    def partition_label(self, partition: Interval) -> str:
        return partition_name(partition, self.partition_grain, self.zone)

    @property
    def feed_or_none(self) -> Feed | None:
        return getattr(self, "feed", None)

    @property
    def is_loaded_from_connection(self) -> bool:
        """Jobs read its rows from a connection and write them into the lake."""
        feed = self.feed_or_none
        return self.ingested and feed is not None and feed.kind == FeedKind.CONNECTION

    def in_grace(self, *, now: datetime) -> bool:
        return self.grace_until is not None and now < self.grace_until


class GracePeriod(models.Model):
    """`[began_at, ends_at)` in which a dataset was in grace, as it came to be: the scores leave that time out, and no other."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="grace_periods")
    began_at = models.DateTimeField()
    ends_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["began_at"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(ends_at__gt=models.F("began_at")), name="grace_lasts_a_while")
        ]

    def __str__(self) -> str:
        return f"{self.dataset} [{self.began_at}, {self.ends_at})"


class FeedKind(models.TextChoices):
    CONNECTION = "connection"
    CHANGELOG = "changelog"
    PIPELINE = "pipeline"


class Feed(models.Model):
    """Where a dataset's rows come from and how often to look."""

    dataset = models.OneToOneField(Dataset, on_delete=models.CASCADE, related_name="feed")
    kind = models.CharField(max_length=20, choices=FeedKind.choices, default=FeedKind.CONNECTION)
    connection = models.ForeignKey(Connection, on_delete=models.PROTECT, null=True, related_name="feeds")
    """Set for the kind `connection`, and only there."""
    object = models.CharField(max_length=500)
    """A table or a glob of files of the connection, the name of the changelog's stream, or the name of the pipeline."""
    cursor_column = models.CharField(max_length=100, blank=True)
    """The watermark: rows at or after the last one read are the changes. Empty: files, or no changes."""
    every = models.DurationField(default=timedelta(minutes=5))
    options = models.JSONField(default=dict, blank=True)
    inputs = models.JSONField(null=True, blank=True)
    """Names of datasets in the lake that it is made from; the gate is asked about them before a job starts. None: those
    that lineage knows of."""
    paused = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(kind=FeedKind.CONNECTION, connection__isnull=False)
                | Q(kind__in=(FeedKind.CHANGELOG, FeedKind.PIPELINE), connection__isnull=True),
                name="feed_of_kind_connection_has_one",
            )
        ]

    def __str__(self) -> str:
        return f"{self.address} → {self.dataset}"

    @property
    def source_name(self) -> str:
        """The name of the connection, or the kind where there is none."""
        return str(self.connection or self.kind)

    @property
    def address(self) -> str:
        """The source as people read it: `ops.flights`, `changelog flights-changes`, `pipeline daily-delays`."""
        return f"{self.source_name}{'.' if self.connection else ' '}{self.object}"


class DatasetCopy(models.Model):
    """A dataset in one data center. `monitored_from`: the start of the history that the baseline has tested."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="copies")
    data_center = models.ForeignKey(DataCenter, on_delete=models.PROTECT, related_name="copies")
    uri = models.CharField(max_length=600)
    monitored_from = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["dataset__name", "data_center__name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["dataset", "data_center"], name="one_copy_a_data_center")
        ]
        verbose_name_plural = "dataset copies"

    def __str__(self) -> str:
        return f"{self.dataset}@{self.data_center}"


class LineageEdge(models.Model):
    """`downstream` is made from `upstream`; one to one where every row upstream gives one row downstream."""

    upstream = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="downstream_edges")
    downstream = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="upstream_edges")
    one_to_one = models.BooleanField(default=False)
    source = models.CharField(max_length=30, blank=True)
    """The source of lineage that told of it, which also takes it away. Empty: a person said so."""

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["upstream", "downstream"], name="one_edge_a_pair"),
            models.CheckConstraint(condition=~Q(upstream=models.F("downstream")), name="no_edge_to_itself"),
        ]

    def __str__(self) -> str:
        return f"{self.upstream} → {self.downstream}"


class LineageTable(models.Model):
    """A table that lineage tells of, onboarded or not: `name` as the connection calls it. No connection: nobody can read it."""

    namespace = models.CharField(max_length=200)
    name = models.CharField(max_length=500)
    connection = models.ForeignKey(Connection, on_delete=models.SET_NULL, null=True, related_name="lineage_tables")
    object = models.CharField(max_length=500, blank=True)
    """What the connection calls it."""
    dataset = models.ForeignKey(Dataset, on_delete=models.SET_NULL, null=True, related_name="lineage_tables")
    dropped = models.BooleanField(default=False)
    """Lineage's newest word of it is that it was dropped."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["namespace", "name"], name="one_lineage_table_a_name")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class LineageLink(models.Model):
    """The newest lineage: `downstream` is made from `upstream`, whether they are onboarded or not."""

    upstream = models.ForeignKey(LineageTable, on_delete=models.CASCADE, related_name="downstream_links")
    downstream = models.ForeignKey(LineageTable, on_delete=models.CASCADE, related_name="upstream_links")
    one_to_one = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["upstream", "downstream"], name="one_lineage_link_a_pair")
        ]

    def __str__(self) -> str:
        return f"{self.upstream} → {self.downstream}"


class LineageDay(models.Model):
    """The daily look at lineage and metadata: one row a day, claimed with a lease, ended with what it changed."""

    day = models.DateField(unique=True)
    source = models.CharField(max_length=30, blank=True)
    attempt = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField()
    leased_until = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    report = models.JSONField(default=dict, blank=True)
    """By kind of change (added, pruned, changed, missing, offboarded, refused, unreadable), what it was."""
    error = models.TextField(blank=True)

    class Meta:
        ordering: ClassVar = ["-day"]

    def __str__(self) -> str:
        return f"lineage of {self.day}"
