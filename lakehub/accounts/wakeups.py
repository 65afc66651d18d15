"""When the tasks of accounts have something to do."""

from __future__ import annotations

from datetime import datetime, timedelta

from lakehub.accounts.sign_in import passwords
from lakehub.processes.wakeups import Wakeup


def _next_link_at(_now: datetime) -> datetime | None:
    return passwords.next_link_at()


WAKEUPS = (
    Wakeup("lakehub.accounts.tasks.sweep_accounts", timedelta(hours=1)),
    Wakeup("lakehub.accounts.tasks.send_password_links", timedelta(hours=1), next_due=_next_link_at),
)
