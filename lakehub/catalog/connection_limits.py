"""How much of a source all jobs and looks may use together, whichever dataset they are for."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from lakehub.accounts.audit import audit_log
from lakehub.catalog.models import Connection
from lakehub.catalog.validation import Problems

BOUNDS = {"rows_per_s": (100, 1_000_000_000), "max_connections": (1, 1000)}
"""The least and the most that people may set: a job at one row a second would hold its process until its deadline."""


def limit_connection(
    connection: Connection, *, rows_per_s: int | None, max_connections: int | None, actor: str, now: datetime
) -> None:
    """None: no limit. Jobs that are at work follow a limit that changes; a first one holds from the next job on. Raises Refused, by field."""
    limits = {"rows_per_s": rows_per_s, "max_connections": max_connections}
    problems = Problems()
    for name, value in limits.items():
        least, most = BOUNDS[name]
        if value is not None and not least <= value <= most:
            problems.add(name, f"`{name}` is {value}: give a number from {least:,} to {most:,}, or none for no limit.")
    problems.raise_if_any()
    was = {name: getattr(connection, name) for name in limits}
    with transaction.atomic():
        Connection.objects.filter(pk=connection.pk).update(**limits)
        audit_log.record(actor, "limit connection", f"connection:{connection.name}", now=now, was=was, becomes=limits)
    connection.rows_per_s, connection.max_connections = rows_per_s, max_connections
