"""One line a change: who did what to which thing."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from lakehub.accounts.models import AuditEntry


def record(actor: str, action: str, subject: str, *, now: datetime, **detail: Any) -> None:
    """Call it inside the transaction of the change. Never put a secret into `detail`."""
    AuditEntry.objects.create(at=now, actor=actor, action=action, subject=subject, detail=detail)
