"""Read-only connections to databases, bounded by the database itself where it can be."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from math import ceil
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from lakehub.catalog.metadata.tables import SqlTable
from lakehub.kernel import addresses
from lakehub.source_databases.engine import CannotOpen, open_database
from lakehub.source_databases.timeouts import DEFAULT_TIMEOUTS, Timeouts
from lakehub.source_databases.urls import UnusableUrl
from quality.engines.backends import database_dialects
from quality.engines.backends.database_dialects import DatabaseDialect
from quality.engines.scans.parts import CannotRead
from quality.engines.scans.scan import Limits

_CANCEL_AFTER = timedelta(seconds=5)
"""A database that does not stop by itself is left so long after its timeout."""


@contextmanager
def open_connection(target: SqlTable, limits: Limits) -> Iterator[sa.Connection]:
    """A connection of its own, which may only read and has `limits.timeout` for each statement."""
    shown = table_label(target)
    try:
        with open_database(target.url, _timeouts(limits)) as source, source.at_most(limits.timeout + _CANCEL_AFTER):
            _limit_session(source.connection, limits)
            yield source.connection
    except (CannotOpen, UnusableUrl) as failed:
        raise CannotRead(f"{shown} cannot be read: {failed}") from failed
    except SQLAlchemyError as failed:
        raise CannotRead(f"{shown} cannot be read: {driver_message(failed)}") from failed


def _timeouts(limits: Limits) -> Timeouts:
    """In few steps, as each makes an engine of its own. A deadline keeps what is left of them."""
    steps = ceil((limits.timeout + _CANCEL_AFTER) / DEFAULT_TIMEOUTS.silence)
    return replace(DEFAULT_TIMEOUTS, silence=DEFAULT_TIMEOUTS.silence * steps)


def table_label(target: SqlTable) -> str:
    return f"{target.table} of {addresses.redacted_url(target.url)}"


def driver_message(failed: SQLAlchemyError) -> str:
    return str(getattr(failed, "orig", None) or failed).splitlines()[0]


def _limit_session(connection: sa.Connection, limits: Limits) -> None:
    for statement in DatabaseDialect.for_connection(connection).session_limits(
        int(limits.timeout.total_seconds() * 1000)
    ):
        connection.exec_driver_sql(statement)
    if connection.dialect.name == "sqlite":
        database_dialects.register_sqlite_functions(_driver_connection(connection))
        _stop_sqlite_after(connection, limits.timeout)


def _driver_connection(connection: sa.Connection) -> Any:
    return connection.connection.driver_connection


def _stop_sqlite_after(connection: sa.Connection, timeout: timedelta) -> None:
    """SQLite has no timeout of its own: it asks us every so many steps whether to go on."""
    ends_at = time.monotonic() + timeout.total_seconds()
    _driver_connection(connection).set_progress_handler(lambda: int(time.monotonic() > ends_at), 10_000)
