"""The one place where a database that is read is opened: by a URL that was checked, read only where that can be said, and bounded."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError

from lakehub.source_databases.deadline import deadline
from lakehub.source_databases.interruption import current_interruption
from lakehub.source_databases.stop import ConnectionStop
from lakehub.source_databases.timeouts import DEFAULT_TIMEOUTS, Timeouts
from lakehub.source_databases.tls_errors import tls_problem
from lakehub.source_databases.urls import DatabaseUrl, read_url

_opening: ContextVar[ConnectionStop | None] = ContextVar("opening", default=None)
"""What may stop the connection that this thread is just making."""


class CannotOpen(RuntimeError):
    """The database was not reached. In words for people, without the password, whatever the server says."""


class SilentDatabase(CannotOpen):
    """It was left, as it did not answer in time."""


@dataclass(frozen=True)
class SourceConnection:
    """An open connection, and what ends it."""

    connection: sa.Connection
    _stop: ConnectionStop

    @contextmanager
    def at_most(self, limit: timedelta) -> Iterator[None]:
        """The block ends in that time, and in what cancelling may take. Raises SilentDatabase where it had to be ended."""
        with _bounded(self._stop, limit):
            yield


@contextmanager
def open_database(url: str, timeouts: Timeouts = DEFAULT_TIMEOUTS) -> Iterator[SourceConnection]:
    """A connection of its own. Raises UnusableUrl, CannotOpen, and in the block what SQLAlchemy raises."""
    target, engine = read_url(url), _engine(url, timeouts)
    stop = ConnectionStop(timeouts, _query_killer(engine, target, timeouts))
    with _interruptible(stop):
        connection = _connect(engine, target, stop, _time_to_connect(target, timeouts))
        try:
            yield SourceConnection(connection, stop)
        finally:
            # What it says to the server as it ends is no reason to wait for long.
            with deadline(timeouts.cancel, stop.shut_down):
                connection.close()


@contextmanager
def _interruptible(stop: ConnectionStop) -> Iterator[None]:
    """Raises SilentDatabase where whoever reads was interrupted."""
    interruption = current_interruption()
    if interruption is not None:
        interruption.add(stop)
        if interruption.reason:
            interruption.remove(stop)
            raise SilentDatabase(interruption.reason)
    try:
        yield
    finally:
        if interruption is not None:
            interruption.remove(stop)
        stop.end()


def _connect(engine: sa.Engine, target: DatabaseUrl, stop: ConnectionStop, limit: timedelta) -> sa.Connection:
    token = _opening.set(stop)
    try:
        with _bounded(stop, limit):
            return engine.connect()
    except SQLAlchemyError as problem:
        raise CannotOpen(_without_password(problem, target)) from problem
    except OSError as problem:
        raise CannotOpen(_without_password(problem, target)) from problem
    except (ValueError, TypeError, LookupError, AttributeError) as problem:
        # What drivers raise for a value that they do not understand; it may hold the value.
        raise CannotOpen(
            f"The driver does not understand the URL ({type(problem).__name__}): check its host, name and options."
        ) from None
    finally:
        _opening.reset(token)


def error_text(problem: BaseException, url: str) -> str:
    """What the driver says, where SQLAlchemy has put it into words of its own; without the password of the URL."""
    return _without_password(problem, read_url(url))


def _without_password(problem: BaseException, target: DatabaseUrl) -> str:
    """A server may repeat what it was told."""
    text = tls_problem(problem, target.address.host or "", target.port, target.options)
    if text is not None:
        return text
    text, password = str(getattr(problem, "orig", None) or problem), target.address.password
    return text.replace(password, "***") if password else text


@contextmanager
def _bounded(stop: ConnectionStop, limit: timedelta) -> Iterator[None]:
    with deadline(limit, stop.stop) as has_fired:
        try:
            yield
        except SQLAlchemyError as problem:
            if not has_fired.is_set():
                raise
            raise SilentDatabase(f"it timed out, with no answer within {limit.total_seconds():g} seconds") from problem


def _time_to_connect(target: DatabaseUrl, timeouts: Timeouts) -> timedelta:
    """For the driver's own handshake and what SQLAlchemy asks after it. A URL may give more than is usual."""
    own = target.options.get("connect_timeout")
    return (timedelta(seconds=own) if isinstance(own, int) else timeouts.connect) + timeouts.cancel


@lru_cache(maxsize=64)
def _engine(url: str, timeouts: Timeouts) -> sa.Engine:
    target = read_url(url)
    try:
        arguments = target.driver.arguments(timeouts, target.options)
        if target.driver.backend == "postgresql" and not target.address.password:
            # Else libpq sends that of PGPASSWORD, which is not meant for whoever asks for one.
            arguments |= {"password": ""}
        engine = sa.create_engine(target.address, poolclass=sa.NullPool, connect_args=arguments)
    except (NoSuchModuleError, ImportError) as missing:
        raise CannotOpen(
            f"This kind of database has no driver here: {missing}. Install the one that docs/engines.md names for it, and "
            "restart Lakehub."
        ) from None

    @sa.event.listens_for(engine, "do_connect")
    def connect(dialect: sa.Dialect, record: object, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        raw = _open_raw(dialect, target, timeouts, arguments, keywords)
        if (stop := _opening.get()) is not None:
            stop.opened(raw)
        if target.driver.backend == "postgresql":
            _prepare_postgresql(raw, timeouts)
        return raw

    return engine


def _open_raw(
    dialect: sa.Dialect, target: DatabaseUrl, timeouts: Timeouts, arguments: list[Any], keywords: Mapping[str, Any]
) -> Any:
    if target.driver.has_file:
        # SQLite would make an empty database of a mistyped path: what is there is opened, read only, exactly this path.
        uri = f"{target.file.as_uri()}?mode=ro"
        return sqlite3.connect(uri, uri=True, timeout=30, check_same_thread=False)
    if dialect.driver == "pymysql":
        from lakehub.source_databases.pymysql_connection import open_pymysql

        return open_pymysql(keywords, timeouts, _opening.get() or ConnectionStop(timeouts))
    return dialect.connect(*arguments, **keywords)


def _prepare_postgresql(raw: Any, timeouts: Timeouts) -> None:
    """So that the server does not go on with what nobody waits for, and tells instants in UTC: times of a zone that sets its clocks back
    have no order. After the start, as poolers refuse it among its options."""
    cursor = raw.cursor()
    cursor.execute(f"SET statement_timeout = {timeouts.silence_s * 1000:d}")
    cursor.execute("SET TIME ZONE 'UTC'")
    cursor.close()
    raw.commit()


def _query_killer(engine: sa.Engine, target: DatabaseUrl, timeouts: Timeouts) -> Any:
    """MySQL and MariaDB are told on a connection of their own; None for the others."""
    if target.driver.backend not in ("mysql", "mariadb"):
        return None
    quick = replace(timeouts, connect=timeouts.cancel, silence=timeouts.cancel)
    _, own_keywords = engine.dialect.create_connect_args(target.address)
    quick_options = {**target.options, "connect_timeout": quick.connect_s}
    keywords = {**own_keywords, **target.driver.arguments(quick, quick_options)}

    def kill(thread: int) -> None:
        with closing(_open_raw(engine.dialect, target, quick, [], keywords)) as other:
            other.cursor().execute(f"KILL QUERY {thread:d}")

    return kill
