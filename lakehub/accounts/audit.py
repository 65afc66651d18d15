"""One line a change: who did what to which thing; and finding the lines again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from lakehub.accounts.models import AuditEntry


@dataclass(frozen=True)
class Wanted:
    """Which entries: all of an actor, of a subject (`dataset:flights`, or `dataset:` for all of a kind), within `[since, until)`."""

    actor: str = ""
    subject: str = ""
    action: str = ""
    since: datetime | None = None
    until: datetime | None = None


def record(actor: str, action: str, subject: str, *, now: datetime, **detail: Any) -> None:
    """Call it inside the transaction of the change. Never put a secret into `detail`."""
    AuditEntry.objects.create(at=now, actor=actor, action=action, subject=subject, detail=detail)


def entries(wanted: Wanted) -> QuerySet[AuditEntry]:
    """Newest first. Each narrowing is one that an index finds."""
    found = AuditEntry.objects.order_by("-at", "-pk")
    if wanted.actor:
        found = found.filter(actor=wanted.actor)
    if wanted.subject.endswith(":"):
        found = found.filter(subject__gte=wanted.subject, subject__lt=wanted.subject[:-1] + ";")
    elif wanted.subject:
        found = found.filter(subject=wanted.subject)
    if wanted.action:
        found = found.filter(action=wanted.action)
    if wanted.since:
        found = found.filter(at__gte=wanted.since)
    if wanted.until:
        found = found.filter(at__lt=wanted.until)
    return found
