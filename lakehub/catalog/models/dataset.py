"""A table that people care about: how it is keyed and partitioned, what is promised of it, and where its rows come from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import ClassVar
from zoneinfo import ZoneInfo

from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import Q

from lakehub.accounts.models import SLUG, Team
from lakehub.catalog.models.places import Connection
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, partition_name
from lakehub.kernel.partitions.form import TIME_IN_UTC, PartitionForm, partition_form
from lakehub.kernel.partitions.zones import UnknownZone, zone_named

TIERS = range(6)


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
            return zone_named(str(self.overrides.get("event_time_zone") or default))
        except UnknownZone:
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

    @property
    def is_modelled(self) -> bool:
        """A pipeline makes its rows from other datasets of the lake."""
        feed = self.feed_or_none
        return self.ingested and feed is not None and feed.kind == FeedKind.PIPELINE

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
    columns_left_out = models.JSONField(default=list, blank=True)
    """Of a captured table, the names of columns that do not come into the lake."""
    columns_hashed = models.JSONField(default=list, blank=True)
    """Those that come as keyed hashes."""
    columns_masked = models.JSONField(default=list, blank=True)
    """Those that are null there."""
    inputs = models.JSONField(null=True, blank=True)
    """Names of datasets in the lake that it is made from; the gate is asked about them before a job starts. None: those
    that lineage knows of."""
    paused = models.BooleanField(default=False)
    """No job reads its source; those that were at work stop after the commit that they are in, and go on when it is resumed."""
    paused_by = models.CharField(max_length=150, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_why = models.TextField(blank=True)

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
    def pause_text(self) -> str:
        """`paused by ana since 2026-11-25 04:10 UTC: the database moves`; empty where it is not paused."""
        if not self.paused:
            return ""
        by = f" by {self.paused_by}" if self.paused_by else ""
        since = f" since {self.paused_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if self.paused_at else ""
        return f"paused{by}{since}{f': {self.paused_why}' if self.paused_why else ''}"

    @property
    def source_name(self) -> str:
        """The name of the connection, or the kind where there is none."""
        return str(self.connection or self.kind)

    @property
    def address(self) -> str:
        """The source as people read it: `ops.flights`, `changelog flights-changes`, `pipeline daily-delays`."""
        return f"{self.source_name}{'.' if self.connection else ' '}{self.object}"
