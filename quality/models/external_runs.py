"""What pipelines elsewhere tell: that a run of theirs has finished, and the secrets that vouch for those without a token."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from lakehub.accounts.models import Team, User
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.db.encrypted_fields import EncryptedTextField


class ExternalRun(models.Model):
    """A run of a pipeline that wrote [start, end) of a copy, as whoever ran it names it. Told again, nothing happens."""

    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="finished_runs")
    run_id = models.CharField(max_length=200)
    start = models.DateTimeField()
    end = models.DateTimeField()
    link = models.URLField(max_length=500, blank=True)
    """Where the run can be looked at."""
    reported_by = models.CharField(max_length=150)
    via = models.CharField(max_length=100, blank=True)
    """The token or the hook that it came by."""
    reported_at = models.DateTimeField()
    units_made_due = models.PositiveIntegerField(default=0)
    """So many test runs it asked for."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["copy", "run_id"], name="finished_once")]
        indexes: ClassVar = [models.Index(fields=["copy", "-reported_at"], name="finished_newest_of_copy")]

    def __str__(self) -> str:
        return f"{self.run_id} of {self.copy}"


class PipelineHook(models.Model):
    """An address that a tool may report to without a token: it signs with the secret. No dataset: any of the team's."""

    key = models.CharField(max_length=16, unique=True)
    """Names it in the address; it is no secret."""
    secret = EncryptedTextField()
    name = models.CharField(max_length=100)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="pipeline_hooks")
    dataset = models.ForeignKey(Dataset, on_delete=models.CASCADE, null=True, blank=True, related_name="pipeline_hooks")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    """What comes by it may do what this person may do in the team."""
    created_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.name} ({self.key})"
