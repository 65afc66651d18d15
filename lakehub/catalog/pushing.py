"""Metadata changed: workers are told at once, when the change is committed.

A wake-up and nothing else: what is behind is found in the database, so one that is lost costs a second.
"""

from __future__ import annotations

from celery import current_app
from django.conf import settings
from django.db import transaction

EXPIRES_S = 5
"""By then the regular look has come."""


def metadata_changed() -> None:
    """Call it inside the transaction of the change."""
    # Robust: a broker that is down is logged, and undoes nothing.
    transaction.on_commit(_wake, robust=True)


def _wake() -> None:
    with current_app.connection_for_write() as broker:
        # Nobody waits for a broker that is down.
        broker.ensure_connection(max_retries=1, interval_start=0, timeout=1)
        current_app.send_task(
            settings.LAKEHUB_TASK_ON_METADATA_CHANGE, expires=EXPIRES_S, retry=False, connection=broker
        )
