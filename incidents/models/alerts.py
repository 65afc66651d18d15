"""How alerts are set up: what each dataset's categories are worth, where a team wants to hear of it, what suppresses what."""

from __future__ import annotations

from datetime import time
from typing import ClassVar
from zoneinfo import ZoneInfo

from django.db import models
from django.db.models import F, Q

from incidents import channels
from incidents.domain.alerting import quiet_hours, routing
from incidents.domain.alerting.quiet_hours import ALL_DAYS, QuietHours
from incidents.domain.alerting.routing import Severity
from incidents.models.outbox_row import OutboxRow
from lakehub.accounts.models import Team
from lakehub.catalog.models import Dataset
from lakehub.db.encrypted_fields import EncryptedTextField
from quality.models import Category

SEVERITY_CHOICES = [(severity.value, severity.value) for severity in Severity]
DIGEST_CHOICES = [(interval.value, interval.value) for interval in quiet_hours.DigestInterval]
DEFAULT_DIGEST_TIME = time(8)


class Alert(models.Model):
    """What a failure of one category of a dataset is worth. Made from a template; what a person set in its place stays."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="alerts")
    category = models.CharField(max_length=20, choices=Category.choices)
    severity = models.CharField(max_length=10, choices=SEVERITY_CHOICES)
    """Of the template."""
    because = models.CharField(max_length=200)
    override = models.JSONField(default=dict, blank=True)
    """`severity`, `muted` and `why`, as a person set them; empty: the template counts."""
    overridden_by = models.CharField(max_length=150, blank=True)
    overridden_at = models.DateTimeField(null=True, blank=True)
    metadata_version = models.PositiveIntegerField()
    """Of the dataset when the template was applied; behind the dataset's own, it is again."""
    generated_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["dataset__name", "category"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["dataset", "category"], name="one_alert_a_category")]

    def __str__(self) -> str:
        return f"{self.dataset}: {self.category}"

    @property
    def setting(self) -> routing.AlertSetting:
        """What counts."""
        return routing.effective_setting(Severity(self.severity), self.override)


class Route(models.Model):
    """One address of a team, which messages it takes, and when."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="routes")
    channel = models.CharField(max_length=20)
    address = EncryptedTextField()
    enabled = models.BooleanField(default=True)
    tiers = models.JSONField(default=list, blank=True)
    """Empty: all."""
    categories = models.JSONField(default=list, blank=True)
    """Empty: all."""
    least = models.CharField(max_length=10, choices=SEVERITY_CHOICES, default=Severity.LOW)
    """The least severity that it takes."""
    zone = models.CharField(max_length=64, default="UTC")
    quiet_from = models.TimeField(null=True, blank=True)
    quiet_to = models.TimeField(null=True, blank=True)
    quiet_days = models.JSONField(default=list, blank=True)
    """The days on which they begin, Monday is 0. Empty: every day."""
    digest = models.CharField(max_length=10, choices=DIGEST_CHOICES, default=quiet_hours.DigestInterval.NONE)
    digest_at = models.TimeField(default=DEFAULT_DIGEST_TIME)
    """Of a daily digest."""

    class Meta:
        ordering: ClassVar = ["team__name", "pk"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(quiet_from__isnull=True, quiet_to__isnull=True)
                | Q(quiet_from__isnull=False, quiet_to__isnull=False),
                name="quiet_hours_have_both_ends",
            )
        ]

    def __str__(self) -> str:
        return f"{self.team}: {self.channel} {self.shown_address}"

    @property
    def shown_address(self) -> str:
        """As everybody may see it."""
        return channels.redacted_address(self.channel, self.address)

    @property
    def matcher(self) -> routing.RouteMatcher:
        return routing.RouteMatcher(frozenset(self.tiers), frozenset(self.categories), Severity(self.least))

    @property
    def quiet(self) -> QuietHours | None:
        if self.quiet_from is None or self.quiet_to is None:
            return None
        return QuietHours(self.quiet_from, self.quiet_to, ZoneInfo(self.zone), frozenset(self.quiet_days) or ALL_DAYS)

    @property
    def may_delay(self) -> bool:
        """It may tell later."""
        return self.digest != quiet_hours.DigestInterval.NONE or self.quiet_from is not None


class SuppressionRule(models.Model):
    """Where a dataset differs from the default (freshness holds the messages of all other categories)."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="suppression_rules")
    by_category = models.CharField(max_length=20, choices=Category.choices)
    suppresses = models.CharField(max_length=20, choices=Category.choices)
    enabled = models.BooleanField(default=True)
    """False: a default that does not count here."""
    set_by = models.CharField(max_length=150)
    set_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["dataset", "by_category", "suppresses"], name="one_suppression_rule_a_pair"
            ),
            models.CheckConstraint(condition=~Q(by_category=F("suppresses")), name="nothing_suppresses_itself"),
        ]

    def __str__(self) -> str:
        return f"{self.dataset}: {self.by_category} {'suppresses' if self.enabled else 'does not suppress'} {self.suppresses}"


class DigestState(models.TextChoices):
    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"


class Digest(OutboxRow):
    """One message that lists what a route collected; written together with the claim of what it lists, sent afterwards."""

    route = models.ForeignKey(Route, on_delete=models.SET_NULL, null=True, related_name="digests")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="digests")
    channel = models.CharField(max_length=20)
    address = EncryptedTextField()
    state = models.CharField(max_length=10, choices=DigestState.choices, default=DigestState.PENDING)

    class Meta:
        ordering: ClassVar = ["-created_at", "-pk"]
        indexes: ClassVar = [models.Index(fields=["due_at"], condition=Q(state="pending"), name="digest_due")]

    def __str__(self) -> str:
        return f"digest of {self.created_at:%Y-%m-%d %H:%M} to {self.team}"
