"""What data there is: datasets, their copies in the data centers, where they come from and what they feed."""

from __future__ import annotations

from copy import copy as shallow_copy
from datetime import UTC, datetime, timedelta
from typing import ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import Q

from lakehub.accounts.models import SLUG, Team
from lakehub.catalog.encrypted_fields import EncryptedTextField
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.metadata.table_locations import NamedTable, TableLocation
from lakehub.catalog.storages import STORAGES, Storage
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, partition_name
from lakehub.kernel.partitions.form import TIME_IN_UTC, PartitionForm, partition_form
from lakehub.kernel.registry import UnknownPlugin

TIERS = range(6)
MAX_COPIES = 32
"""Of one dataset."""


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

    def table_location(self, table: str) -> TableLocation:
        """Where the rows of its table lie; of a storage that cannot say, the table of this URL."""
        try:
            return self.storage.table_location(table)
        except MetadataUnavailable:
            return NamedTable(self.url, table)


class DatasetKind(models.TextChoices):
    APPEND_ONLY = "append-only"
    APPEND_PLUS_UPDATE = "append-plus-update"


LAKE_PARTITION_COLUMN = "_lakehub_partition"
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
    partition_column = models.CharField(max_length=200, blank=True)
    """Several with commas between, where it takes more than one to say the time."""
    grain = models.CharField(max_length=10, choices=GRAINS, default=Grain.NONE)
    partition_form = models.CharField(max_length=200, blank=True)
    """How the values of the partition column say a time (lakehub.kernel.partitions.form). Empty: as names of partitions."""
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
    def event_zone(self) -> ZoneInfo:
        """Of event times that are written without a zone: the override's, else what the form of the partitions says of such times."""
        default = str(UTC) if self.partition_form == TIME_IN_UTC else self.partition_tz
        try:
            return ZoneInfo(str(self.overrides.get("event_time_zone") or default))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return ZoneInfo(default)

    @property
    def partition_grain(self) -> Grain:
        return Grain(self.grain)

    @property
    def source_form(self) -> PartitionForm | None:
        """How the table that the rows come from says which partition a row belongs to; None without partitions."""
        if self.partition_grain is Grain.NONE:
            return None
        return partition_form(self.partition_column, self.partition_grain, self.zone, self.partition_form)

    @property
    def lake_partition_column(self) -> str:
        """The column of the lake's table that holds the names of partitions: the source's own where it does, else one of ours."""
        form = self.source_form
        return self.partition_column if form is None or form.is_named else LAKE_PARTITION_COLUMN

    def partition_label(self, partition: Interval) -> str:
        return partition_name(partition, self.partition_grain, self.zone)

    @property
    def schema_changes(self) -> str:
        """What a change of its columns is worth: incident, breaking or show."""
        return str(self.overrides.get("schema_changes") or "breaking")

    @property
    def not_compared(self) -> list[str]:
        """Columns that each data center writes for itself."""
        names = self.overrides.get("not_compared") or []
        return [
            str(name).strip() for name in (names.split(",") if isinstance(names, str) else names) if str(name).strip()
        ]

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

    @classmethod
    def compared(cls) -> models.QuerySet[LineageEdge]:
        """Of each dataset the edge to the upstream that its rows are compared with: of several that are one to one the oldest
        whose upstream is not off-boarded."""
        live = cls.objects.filter(one_to_one=True, upstream__offboarded_at=None)
        older = live.filter(downstream=models.OuterRef("downstream"), pk__lt=models.OuterRef("pk"))
        return live.filter(~models.Exists(older))


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
