"""What the workers do for accounts."""

from __future__ import annotations

from celery import shared_task

from lakehub import wiring
from lakehub.accounts.audit import chain
from lakehub.accounts.sign_in import passwords
from lakehub.accounts.sign_in.session_store import SessionStore


@shared_task
def send_password_links() -> None:
    passwords.send_links(now=wiring.clock.now())


@shared_task
def sweep_accounts() -> None:
    """Once an hour: sessions that have ended, and lines of the audit log that a process left out of the chain when it died."""
    SessionStore.clear_expired()
    chain.extend()
