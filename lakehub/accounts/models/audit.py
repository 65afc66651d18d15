"""What people and programs changed."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from lakehub.accounts.models.people import Team


class AuditEntry(models.Model):
    """Who changed what, when; appended with the change, never edited. `lakehub.accounts.audit.chain` numbers and hashes it."""

    at = models.DateTimeField()
    actor = models.CharField(max_length=150)
    action = models.CharField(max_length=63)
    subject = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)
    # What is in the chain stays as it was when the team goes.
    team = models.ForeignKey(Team, on_delete=models.DO_NOTHING, null=True, db_constraint=False, related_name="+")
    number = models.BigIntegerField(null=True, unique=True, editable=False)
    previous = models.CharField(max_length=64, editable=False, default="")
    digest = models.CharField(max_length=64, editable=False, default="")

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["subject", "-at"], name="audit_of_subject"),
            models.Index(fields=["actor", "-at"], name="audit_by_actor"),
            models.Index(fields=["team", "-at"], name="audit_of_team"),
            models.Index(fields=["-at"], name="audit_newest"),
            models.Index(fields=["id"], name="audit_unchained", condition=models.Q(number=None)),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.actor} {self.action} {self.subject}"


class AuditHead(models.Model):
    """The end of the audit log's chain: the one row that its writers lock."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    number = models.BigIntegerField(default=0)
    digest = models.CharField(max_length=64, default="")

    class Meta:
        constraints: ClassVar = [models.CheckConstraint(condition=models.Q(id=1), name="audit_has_one_head")]

    def __str__(self) -> str:
        return f"{self.number}:{self.digest}"
