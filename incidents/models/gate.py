"""What the gate was asked, and what its consumers do with an answer."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from incidents.policies import check_blocks
from lakehub.catalog.models import DatasetCopy


class GatePolicy(models.Model):
    """What a consumer's jobs do with a verdict, by tier. No row: fail and unknown block, warn and pass do not."""

    consumer = models.CharField(max_length=63)
    tier = models.PositiveSmallIntegerField()
    blocks = models.JSONField(default=list, blank=True, validators=[check_blocks])
    """Verdicts (`unknown`) or reasons of one (`unknown:not_due`) that block."""

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["consumer", "tier"], name="one_policy_a_tier")]
        verbose_name_plural = "gate policies"

    def __str__(self) -> str:
        return f"{self.consumer}, tier {self.tier}"


class GateQuestion(models.Model):
    """A question that the gate was asked and what it answered; the query-level score is computed from these."""

    at = models.DateTimeField()
    consumer = models.CharField(max_length=63)
    request_id = models.CharField(max_length=100)
    copy = models.ForeignKey(DatasetCopy, on_delete=models.CASCADE, related_name="+")
    start = models.DateTimeField()
    end = models.DateTimeField()
    verdict = models.CharField(max_length=10)
    allowed = models.BooleanField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["consumer", "request_id", "copy", "start", "end"], name="one_question_a_request"
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["-at"], name="question_newest"),
            models.Index(fields=["copy", "at"], name="question_of_copy"),
        ]

    def __str__(self) -> str:
        return f"{self.consumer} about {self.copy}: {self.verdict}"
