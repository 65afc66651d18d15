"""What is told to whom: messages about incidents, and letters to owners."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from incidents import channels
from incidents.models.alerts import Digest, Route
from incidents.models.incident import Incident
from incidents.models.outbox_row import OutboxRow
from lakehub.accounts.models import Team
from lakehub.catalog.models import Dataset
from lakehub.db.encrypted_fields import EncryptedTextField, KeyedDigestField


class MessageState(models.TextChoices):
    PENDING = "pending"
    HELD = "held"
    COLLECTED = "collected", "collected for a digest"
    SENT = "sent"
    DROPPED = "dropped"
    FAILED = "failed"


class Message(OutboxRow):
    """The outbox: written with the change that caused it, sent afterwards, once more at worst."""

    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="messages")
    occasion = models.CharField(max_length=20)
    """opened, worse, acknowledged, released, resolved, reopened, reported, eta, ..."""
    channel = models.CharField(max_length=20)
    address = EncryptedTextField()
    """Often a secret. `address_key` finds the messages to the same one."""
    address_key = KeyedDigestField("address")
    recipient_reason = models.CharField(max_length=200, blank=True)
    """What made the address one that is told: a route, a subscription."""
    route = models.ForeignKey(Route, on_delete=models.SET_NULL, null=True, blank=True, related_name="messages")
    """It decides when the message goes out; None: at once."""
    digest = models.ForeignKey(Digest, on_delete=models.SET_NULL, null=True, blank=True, related_name="messages")
    facts = models.JSONField(default=dict, blank=True)
    """The same for programs, as it was when the message was written."""
    state = models.CharField(max_length=10, choices=MessageState.choices, default=MessageState.PENDING)
    held_by = models.ForeignKey(Incident, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    why = models.CharField(max_length=200, blank=True)
    """Why it is held or was dropped."""
    suppressed_since = models.DateTimeField(null=True, blank=True)
    """Since when stale data holds it."""
    released_at = models.DateTimeField(null=True, blank=True)
    """When what held it was over; reruns asked for then decide whether it goes out."""

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["due_at"], condition=Q(state__in=["pending", "held"]), name="message_due"),
            models.Index(fields=["incident", "created_at"], name="message_of_incident"),
            models.Index(
                fields=["route", "due_at"], condition=Q(state="collected", digest=None), name="message_for_digest"
            ),
        ]

    @property
    def shown_address(self) -> str:
        """Without what is secret in it: everybody who is signed in reads the timeline."""
        return channels.redacted_address(self.channel, self.address)

    def __str__(self) -> str:
        return f"{self.occasion} of #{self.incident_id} to {self.channel}:{self.shown_address}"


SUPPRESSED = Q(state=MessageState.HELD) & (Q(suppressed_since__isnull=False) | Q(held_by__isnull=False))
"""Messages that another failure holds; others wait for the end of a grace period, a snooze, or quiet hours."""


class Letter(OutboxRow):
    """A mail to the owners that no incident caused."""

    address = models.CharField(max_length=500, blank=True)
    """Empty: the team has named none; the page says the same."""
    state = models.CharField(max_length=10, choices=MessageState.choices, default=MessageState.PENDING)

    class Meta:
        abstract = True


class WeeklyReportMail(Letter):
    """The weekly report of a team, as it was written and mailed: one a team and week, however often the task runs."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="weekly_letters")
    week = models.DateField()
    """The Monday it begins with."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["team", "week"], name="one_letter_a_week")]
        indexes: ClassVar = [models.Index(fields=["due_at"], condition=Q(state="pending"), name="letter_due")]

    def __str__(self) -> str:
        return f"report of {self.week} to {self.team}"


class UnverifiedMail(Letter):
    """What is not verified of a dataset, told its owners once; again only after all of it was verified in between."""

    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="unverified_letters")
    over_at = models.DateTimeField(null=True, blank=True)
    """When all of it was verified."""

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["dataset"], condition=Q(over_at=None), name="one_letter_until_verified")
        ]
        indexes: ClassVar = [
            models.Index(fields=["due_at"], condition=Q(state="pending"), name="unverified_letter_due")
        ]

    @property
    def team(self) -> Team:
        return self.dataset.team

    def __str__(self) -> str:
        return f"what is not verified of {self.dataset}"
