"""How messages went: every attempt to send one, and the words in which a team wants them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from incidents.models.message import Message
from lakehub.accounts.models import Team


class Delivery(models.Model):
    """One attempt to send something: what the other side said, and how long it took. Appended, let go when old."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="deliveries")
    message = models.ForeignKey(Message, on_delete=models.CASCADE, null=True, blank=True, related_name="deliveries")
    """None: a trial, a digest, a letter; `occasion` says which."""
    occasion = models.CharField(max_length=20)
    channel = models.CharField(max_length=20)
    address = models.CharField(max_length=200)
    """As everybody may see it."""
    at = models.DateTimeField()
    ok = models.BooleanField()
    status = models.CharField(max_length=20, blank=True)
    """What the other side answered, in a word: `202`, `250`, `sent`. Empty: it was not reached."""
    error = models.CharField(max_length=500, blank=True)
    ms = models.PositiveIntegerField()

    class Meta:
        ordering: ClassVar = ["-at", "-pk"]
        indexes: ClassVar = [
            models.Index(fields=["team", "-at", "-id"], name="delivery_newest_of_team"),
            models.Index(fields=["message", "-id"], condition=Q(message__isnull=False), name="delivery_of_message"),
        ]
        verbose_name_plural = "deliveries"

    def __str__(self) -> str:
        return f"{self.occasion} to {self.channel} {self.address}: {'ok' if self.ok else self.error}"


class MessageTemplate(models.Model):
    """The words of a team for one occasion, or for every occasion that has none of its own."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="message_templates")
    occasion = models.CharField(max_length=20, blank=True)
    """Empty: every other one."""
    subject = models.CharField(max_length=300, blank=True)
    """Empty: Lakehub's own."""
    body = models.TextField(blank=True)
    changed_at = models.DateTimeField()
    changed_by = models.CharField(max_length=150)

    class Meta:
        ordering: ClassVar = ["team__name", "occasion"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["team", "occasion"], name="one_template_an_occasion")]

    def __str__(self) -> str:
        return f"{self.team}: {self.occasion or 'every occasion'}"
