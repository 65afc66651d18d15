"""Actions on many incidents at once, kept so that they can be undone."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from incidents.models.incident import Incident


class BulkAction(models.Model):
    """One action on several incidents. Its lines say what each of them was before, which is what an undo restores."""

    actor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    action = models.CharField(max_length=20)
    at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["-at"]
        indexes: ClassVar = [models.Index(fields=["at"], name="bulk_by_age")]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor} at {self.at:%Y-%m-%d %H:%M}"


class BulkActionItem(models.Model):
    """What became of one incident: the revision that the action left it at, and the values that it had before.

    It goes when that is taken back.
    """

    bulk = models.ForeignKey(BulkAction, on_delete=models.CASCADE, related_name="lines")
    incident = models.ForeignKey(Incident, on_delete=models.CASCADE, related_name="+")
    revision = models.PositiveIntegerField()
    previous_values = models.JSONField(default=dict)
    """Only what the action changed, by the names of the incident's fields."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["bulk", "incident"], name="one_line_an_incident")]

    def __str__(self) -> str:
        return f"#{self.incident_id} in {self.bulk_id}"
