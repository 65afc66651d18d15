"""Change capture: the schemas of events, the servers that are tapped, and which datasets are captured."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from lakehub.accounts.models import Team
from lakehub.catalog.models import DatasetCopy, Feed


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
    place = models.JSONField(default=dict, blank=True)
    """Beside it, as it was told last: {"file", "offset"} of the binlog up to where it was read, and of a transaction that is being taken {"begun"}, its GTID,
    and {"taken"}, the rows by topic."""
    event_at = models.DateTimeField(null=True, blank=True)
    """When that was committed there."""
    caught_up_at = models.DateTimeField(null=True, blank=True)
    """When the tap had taken all that there was. Null: never, or it is not known, as the clock was set back."""
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
    captured_at = models.DateTimeField(null=True, blank=True)
    """When that began, or went on at another server: what its tap had taken by then need not have been of this table. Null: before this was kept."""
    changelog_from = models.JSONField(default=dict, blank=True)
    """By topic of the changelog and partition, the offset from which on changes of that load are there, where nothing else says so: a source without rows to read."""
    captured_table = models.CharField(max_length=1000, blank=True)
    """`host:port/database.table`, or a cluster and a topic: what is captured since then. Another table needs another load, and so does another server that
    does not have the same transactions."""
    captured_columns = models.JSONField(default=dict, blank=True)
    """Which of its columns are left out, hashed or masked since then (`HiddenColumns.as_json`). Others need another load."""
    column_renames = models.JSONField(default=dict, blank=True)
    """Since then, which columns have got another name, and in which transactions (`RenameNotes`)."""
    emptied_sequence = models.PositiveBigIntegerField(default=0)
    """Since then, the number of the last transaction that has emptied the table, where its dataset follows that (`on_truncate`); 0: none has."""
    stopped_load = models.PositiveIntegerField(default=0)
    """The load in which the capture was stopped; it is stopped as long as that is `load`."""
    stopped_why = models.TextField(blank=True)
    """Why, and what to do."""
    counted_since = models.DateTimeField(null=True, blank=True)
    """Since when the taps count the messages that its rows are (`SourceHour`); null: they do not yet."""
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


class SourceHour(models.Model):
    """An hour of a capture: how many messages the rows were that the source's log delivered, counted by the tap before it made messages of them.

    Hours without any have no row."""

    capture = models.ForeignKey(Capture, on_delete=models.CASCADE, related_name="source_hours")
    server = models.CharField(max_length=300)
    """The address, as of `TapServer`: a capture may have gone on at another one within the hour."""
    start = models.DateTimeField()
    messages = models.BigIntegerField(null=True, blank=True)
    """By when they were logged. None: not known, as the capture was stopped, or the clock was set back."""

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["capture", "start", "server"], name="source_hour_once"),
        ]
        indexes: ClassVar = [models.Index(fields=["start"], name="source_hour_start")]

    def __str__(self) -> str:
        return f"{self.capture} {self.start:%Y-%m-%d %H}"


class CaptureHour(models.Model):
    """An hour of a captured copy: how long the changes took that it committed then, and how many messages of the log were logged then and read."""

    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="capture_hours")
    start = models.DateTimeField()
    lags = models.JSONField(default=dict, blank=True)
    """Of what was committed to the lake in this hour: how many events took how long, by bucket (`ingestion.domain.lag.LagCounts`)."""
    read = models.BigIntegerField(default=0)
    """Of the messages that were logged in this hour: how many the commits of the copy have read, whenever that was. Each commit accounts for what it reads."""
    logged = models.BigIntegerField(null=True, blank=True)
    """How many messages the log has of this hour. None: they were not counted yet."""
    source = models.BigIntegerField(null=True, blank=True)
    """How many messages it ought to have: what the rows were that the source delivered, and what was mended and published again. None: not known."""
    is_partial = models.BooleanField(default=False)
    """The copy was loaded, or put elsewhere in the log, so it need not have read each message of the hour."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["copy", "start"], name="capture_hour_once")]
        indexes: ClassVar = [
            models.Index(fields=["start"], name="capture_hour_start"),
            models.Index(fields=["start"], condition=Q(logged=None, is_partial=False), name="capture_hour_uncounted"),
        ]

    def __str__(self) -> str:
        return f"{self.copy} {self.start:%Y-%m-%d %H}"
