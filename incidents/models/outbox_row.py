"""What every row that is sent has in common."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

NOT_LEASED = Q(leased_until=None) | Q(leased_until__lt=Now())
"""What no sender has in hand."""


class OutboxRow(models.Model):
    """Written first and sent afterwards: claimed for a while by whoever sends it, and tried again when it is due."""

    subject = models.CharField(max_length=300)
    body = models.TextField()
    created_at = models.DateTimeField()
    due_at = models.DateTimeField()
    attempt = models.PositiveSmallIntegerField(default=0)
    leased_until = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)

    class Meta:
        abstract = True
