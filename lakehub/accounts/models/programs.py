"""Programs: the names under which they ask the gate, and their keys."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from lakehub.accounts.models.people import SLUG, Team, User


class Consumer(models.Model):
    """A name under which programs ask the gate: the team's that had the first token of it made; `lakehub.accounts.tokens.consumers` has the rule."""

    name = models.CharField(max_length=63, unique=True, validators=[SLUG])
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="consumers")

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class Token(models.Model):
    """A program's key. Only its hash is kept; `consumer` and `data_center` decide what the gate answers it."""

    prefix = models.CharField(max_length=12, unique=True)
    digest = models.CharField(max_length=64)
    name = models.CharField(max_length=100)
    consumer = models.CharField(max_length=63, validators=[SLUG])
    scopes = models.JSONField(default=list)
    data_center = models.CharField(max_length=63, blank=True)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="tokens")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
