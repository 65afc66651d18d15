"""One line a change: who did what to which thing; and finding the lines again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from lakehub.accounts.audit import chain
from lakehub.accounts.audit.subject_teams import team_of_subject
from lakehub.accounts.models import AuditEntry, User
from lakehub.accounts.permissions import is_operator, teams_permitting


@dataclass(frozen=True)
class AuditFilter:
    """Which entries: all of an actor, of a subject (`dataset:flights`, or `dataset:` for all of a kind), within `[since, until)`."""

    actor: str = ""
    subject: str = ""
    action: str = ""
    since: datetime | None = None
    until: datetime | None = None


def record(actor: str, action: str, subject: str, *, now: datetime, **detail: Any) -> None:
    """Call it inside the transaction of the change. Never put a secret into `detail`.

    The line is of the team that the subject belongs to now. It joins the chain when the transaction is committed.
    """
    team = team_of_subject(subject)
    AuditEntry.objects.create(at=now, actor=actor, action=action, subject=subject, detail=detail, team_id=team)
    chain.extend_after_commit()


def visible_entries(reader: User) -> QuerySet[AuditEntry]:
    """The lines of the teams in which `reader` may read them; to whoever runs the instance, all."""
    if is_operator(reader):
        return AuditEntry.objects.all()
    return AuditEntry.objects.filter(team__in=teams_permitting(reader, "audit"))


def find_entries(audit_filter: AuditFilter, *, reader: User) -> QuerySet[AuditEntry]:
    """Newest first, of those that `reader` may see. Each narrowing is one that an index finds."""
    entries = visible_entries(reader).order_by("-at", "-pk")
    if audit_filter.actor:
        entries = entries.filter(actor=audit_filter.actor)
    if audit_filter.subject.endswith(":"):
        entries = entries.filter(subject__gte=audit_filter.subject, subject__lt=audit_filter.subject[:-1] + ";")
    elif audit_filter.subject:
        entries = entries.filter(subject=audit_filter.subject)
    if audit_filter.action:
        entries = entries.filter(action=audit_filter.action)
    if audit_filter.since:
        entries = entries.filter(at__gte=audit_filter.since)
    if audit_filter.until:
        entries = entries.filter(at__lt=audit_filter.until)
    return entries
