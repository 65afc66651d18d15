"""How far the lineage of runs has been sent."""

from __future__ import annotations

from django.db import models


class LineageReceiver(models.Model):
    """Whom lineage is sent to, of whom there is one: which process does it, and when it is tried again. Times are the database's clock."""

    leased_until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    """In a row."""
    next_try_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True)
    """Empty: the last that was sent arrived."""
    last_sent_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return "receiver of lineage"
