"""Workers are told at once that there is something to do, when the change that made it is committed.

A wake-up and nothing else: what is to be done is found in the database, so one that is lost costs a second.
"""

from __future__ import annotations

from datetime import timedelta

from celery import current_app
from django.db import transaction

EXPIRES = timedelta(seconds=5)
"""By then the regular look has come."""


def wake_task(task: str) -> None:
    """Call it inside the transaction of the change; outside of one the task is woken at once."""
    # Robust: a broker that is down is logged, and undoes nothing.
    transaction.on_commit(lambda: send_task(task, EXPIRES), robust=True)


def send_task(task: str, expires: timedelta) -> None:
    """At once. Raises OperationalError where the broker is down."""
    with current_app.connection_for_write() as broker:
        # Nobody waits for a broker that is down.
        broker.ensure_connection(max_retries=1, interval_start=0, timeout=1)
        current_app.send_task(task, expires=expires.total_seconds(), retry=False, connection=broker)
