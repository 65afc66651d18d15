"""Read-only connections to databases, bounded by the database itself where it can be."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError

from lakehub.catalog.metadata.tables import SqlTable
from lakehub.kernel import addresses
from quality.engines.backends import database_dialects
from quality.engines.backends.database_dialects import DatabaseDialect
from quality.engines.scans.deadline import deadline
from quality.engines.scans.parts import CannotRead
from quality.engines.scans.scan import Limits

log = logging.getLogger(__name__)


_CANCEL_AFTER = timedelta(seconds=5)
"""A database that does not stop by itself is left so long after its timeout."""


@contextmanager
def open_connection(target: SqlTable, limits: Limits) -> Iterator[sa.Connection]:
    """A connection of its own, which may only read and has `limits.timeout` for each statement."""
    shown = table_label(target)
    try:
        with (
            _sqlalchemy_engine(target.url).connect() as connection,
            deadline(limits.timeout + _CANCEL_AFTER, lambda: _cancel_query(connection)),
        ):
            _limit_session(connection, limits)
            yield connection
    except (NoSuchModuleError, ImportError) as missing:
        raise CannotRead(
            f"{shown} cannot be read: this kind of database has no driver here: {missing}. Install the driver that "
            "docs/engines.md names for it, and restart the workers."
        ) from missing
    except SQLAlchemyError as failed:
        raise CannotRead(f"{shown} cannot be read: {driver_message(failed)}") from failed


def table_label(target: SqlTable) -> str:
    return f"{target.table} of {addresses.redacted_url(target.url)}"


def driver_message(failed: SQLAlchemyError) -> str:
    return str(getattr(failed, "orig", None) or failed).splitlines()[0]


@lru_cache(maxsize=16)
def _sqlalchemy_engine(url: str) -> sa.Engine:
    parts = sa.make_url(url)
    if parts.get_backend_name() == "sqlite" and parts.database and not parts.query:
        return sa.create_engine(
            parts, poolclass=sa.NullPool, creator=lambda: _connect_existing_sqlite(str(parts.database))
        )
    return sa.create_engine(parts, poolclass=sa.NullPool)


def _connect_existing_sqlite(path: str) -> Any:
    """SQLite would make an empty database of a mistyped path."""
    return sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True, timeout=30, check_same_thread=False)


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


def _cancel_query(connection: sa.Connection) -> None:
    """From another thread, for a database that has not kept its own timeout. What this meets is for the log: the thread that
    waits gets its own error."""
    raw = _driver_connection(connection)
    try:
        if hasattr(raw, "cancel"):
            raw.cancel()
        elif connection.dialect.name in ("mysql", "mariadb"):
            with connection.engine.connect() as other:
                other.exec_driver_sql(f"KILL QUERY {int(raw.thread_id()):d}")
        else:
            raw.close()
    except Exception:
        log.exception(
            "A query of %s could not be cancelled", connection.engine.url.render_as_string(hide_password=True)
        )
