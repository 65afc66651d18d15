"""Incidents, the spans they are made of, what users report, and everything that happened to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from incidents.domain.incident.resolution import FORCED_RESOLUTIONS
from incidents.domain.incident.spans import Incident as IncidentValue
from incidents.domain.incident.spans import Span as SpanValue
from ingestion.models import JobRun
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.interval import Interval
from quality.models import Category, Unit


class IncidentState(models.TextChoices):
    """Detected: open, acknowledged, resolved. Reported by a user: reported, matched, waiting, acknowledged, rejected, resolved."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    REPORTED = "reported"
    MATCHED = "matched"
    WAITING = "waiting", "waiting for the producer"
    REJECTED = "rejected"


class Resolution(models.TextChoices):
    AUTO = "auto", "a scheduled rerun passed"
    MANUAL_RERUN = "manual_rerun", "a rerun by hand passed"
    FALSE_POSITIVE = "false_positive", "false positive"
    ACCEPTED = "accepted", "accepted: true, will not be repaired"
    DECLARED_FIXED = "declared_fixed", "declared fixed"
    REJECTED = "rejected"
    MERGED = "merged", "merged into another incident"
    OFFBOARDED = "offboarded", "the dataset was off-boarded"
    COPY_REMOVED = "copy_removed", "the copy was removed or rebuilt"


class FalsePositive(models.TextChoices):
    WRONG_TEST = "wrong_test", "wrong test"
    WRONG_SLA = "wrong_sla", "wrong SLA"
    PLANNED_CHANGE = "planned_change", "planned change"


class Backfill(models.TextChoices):
    UNKNOWN = "", "not said"
    NOT_NEEDED = "not_needed", "not needed"
    NEEDED = "needed"
    RUNNING = "running"
    DONE = "done"


class RootCause(models.TextChoices):
    """Why it went wrong, as far as the owners know."""

    UPSTREAM_LATE = "upstream_late", "upstream late"
    UPSTREAM_DATA = "upstream_data", "wrong data from upstream"
    SCHEMA_CHANGE = "schema_change", "schema change"
    CODE_CHANGE = "code_change", "code change"
    CONFIGURATION = "configuration", "configuration"
    REPLICATION = "replication", "replication"
    INFRASTRUCTURE = "infrastructure", "infrastructure"
    WRONG_TEST = "wrong_test", "wrong test or threshold"
    OTHER = "other", "something else"


class Incident(models.Model):
    """What is wrong with one dataset in one category, made of spans; its range is theirs."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="incidents")
    category = models.CharField(max_length=20, choices=Category.choices)
    state = models.CharField(max_length=16, choices=IncidentState.choices, default=IncidentState.OPEN)
    title = models.CharField(max_length=300)
    opened_at = models.DateTimeField()
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolution = models.CharField(max_length=20, choices=Resolution.choices, blank=True)
    false_positive = models.CharField(max_length=20, choices=FalsePositive.choices, blank=True)
    resolved_why = models.TextField(blank=True)
    reported = models.BooleanField(default=False)
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="assigned_incidents"
    )
    eta = models.DateTimeField(null=True, blank=True)
    root_cause = models.CharField(max_length=40, choices=RootCause.choices, blank=True)
    root_cause_text = models.TextField(blank=True)
    backfill = models.CharField(max_length=16, choices=Backfill.choices, blank=True)
    backfill_run = models.ForeignKey(JobRun, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    """The job that repairs it; how it ends becomes the state of the backfill."""
    snoozed_until = models.DateTimeField(null=True, blank=True)
    """It is snoozed until then, at the latest; what ends it sooner stands below."""
    snoozed_at = models.DateTimeField(null=True, blank=True)
    snoozed_until_worse = models.BooleanField(default=False)
    """More data fails, or it matters more."""
    snoozed_failures = models.PositiveSmallIntegerField(null=True, blank=True)
    """So many more runs fail."""
    merged_into = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="merged")
    revision = models.PositiveIntegerField(default=0)
    """Grows with each move: an update names the revision that it saw, so of two at once one wins."""

    class Meta:
        indexes: ClassVar = [
            models.Index(
                fields=["dataset", "category"], condition=Q(resolved_at=None), name="incident_open_of_dataset"
            ),
            models.Index(fields=["-opened_at"], name="incident_newest"),
            models.Index(
                fields=["-resolved_at"], condition=Q(resolved_at__isnull=False), name="incident_resolved_newest"
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.title}"

    def as_value(self, span_rows: Iterable[Span]) -> IncidentValue:
        """What the rules of the domain are about; `span_rows` are its own."""
        return IncidentValue(
            id=self.pk,
            dataset=self.dataset_id,
            category=self.category,
            opened_at=self.opened_at,
            spans=tuple(span.as_value() for span in span_rows),
            resolved_at=self.resolved_at,
            forced=self.resolution in FORCED_RESOLUTIONS,
        )


class UserReport(models.Model):
    """What a person says is wrong that no test saw: over which data, since when."""

    incident = models.OneToOneField(Incident, on_delete=models.CASCADE, related_name="report", primary_key=True)
    reporter = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    """None: all copies."""
    start = models.DateTimeField()
    end = models.DateTimeField()
    text = models.TextField()
    occurred_at = models.DateTimeField()
    """When it began to be wrong, as far as the reporter knows."""
    fixed_at = models.DateTimeField(null=True, blank=True)
    matched_incident = models.ForeignKey(
        Incident, on_delete=models.SET_NULL, null=True, blank=True, related_name="reports"
    )
    """The detected incident that explains it."""
    reminders = models.PositiveSmallIntegerField(default=0)
    """How often the producers were asked again."""
    remind_at = models.DateTimeField(null=True, blank=True)
    """When they are asked again; None: they have answered."""

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["start", "end"], condition=Q(fixed_at=None), name="report_open_overlap"),
            models.Index(fields=["remind_at"], condition=Q(remind_at__isnull=False), name="report_to_remind_of"),
        ]

    def __str__(self) -> str:
        return f"report #{self.incident_id}"


class Span(models.Model):
    """One unit failing, from its first failure to the PASS or the waiver that ended it."""

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="spans")
    unit = models.ForeignKey(Unit, on_delete=models.CASCADE, related_name="spans")
    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="+")
    start = models.DateTimeField()
    end = models.DateTimeField()
    """[start, end): the data that is affected; for freshness it starts at the boundary up to which all is complete."""
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["unit"], condition=Q(ended_at=None), name="a_unit_fails_in_one_incident")
        ]
        indexes: ClassVar = [
            models.Index(fields=["copy", "start", "end"], condition=Q(ended_at=None), name="span_active_overlap"),
            models.Index(fields=["incident"], name="span_of_incident"),
            # The lives that reach into a window of time: those that ended after its start, with what began before its end.
            models.Index(fields=["ended_at", "began_at"], name="span_life"),
        ]

    def __str__(self) -> str:
        return f"{self.unit} in #{self.incident_id}"

    def as_value(self) -> SpanValue:
        """What the rules of the domain are about."""
        return SpanValue(self.unit_id, self.copy_id, Interval(self.start, self.end), self.began_at, self.ended_at)


class SpanEvidence(models.Model):
    """What the last failing run of a span saw, kept as long as the incident; `incidents.record.evidence` writes it."""

    span = models.OneToOneField(Span, on_delete=models.CASCADE, related_name="evidence", primary_key=True)
    read_at = models.DateTimeField()
    observed = models.FloatField(null=True)
    threshold = models.CharField(max_length=60, blank=True)
    detail = models.JSONField(default=dict, blank=True)
    """As in the result: facts, missing records by name, groups."""

    def __str__(self) -> str:
        return f"{self.span}, read at {self.read_at}"


class IncidentEvent(models.Model):
    """One thing that happened; the timeline is these rows, and nothing else changes an incident."""

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=30)
    actor = models.CharField(max_length=150, blank=True)
    """Empty: Lakehub itself."""
    was = models.CharField(max_length=16, blank=True)
    becomes = models.CharField(max_length=16, blank=True)
    text = models.TextField(blank=True)
    detail = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering: ClassVar = ["-at", "-id"]
        indexes: ClassVar = [models.Index(fields=["incident", "-at", "-id"], name="event_newest_of_incident")]

    def __str__(self) -> str:
        return f"#{self.incident_id} {self.kind}"
