"""One line a change: who did what to which thing; and finding the lines again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from lakehub.accounts.models import AuditEntry


@dataclass(frozen=True)
class AuditFilter:
    """Which entries: all of an actor, of a subject (`dataset:flights`, or `dataset:` for all of a kind), within `[since, until)`."""

    actor: str = ""
    subject: str = ""
    action: str = ""
    since: datetime | None = None
    until: datetime | None = None


def record(actor: str, action: str, subject: str, *, now: datetime, **detail: Any) -> None:
    """Call it inside the transaction of the change. Never put a secret into `detail`."""
    AuditEntry.objects.create(at=now, actor=actor, action=action, subject=subject, detail=detail)


def find_entries(audit_filter: AuditFilter) -> QuerySet[AuditEntry]:
    """Newest first. Each narrowing is one that an index finds."""
    entries = AuditEntry.objects.order_by("-at", "-pk")
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
