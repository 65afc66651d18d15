"""Ending a connection from another thread, in bounded time, whatever the server does."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any

from lakehub.source_databases.timeouts import Timeouts

logger = logging.getLogger(__name__)


class ConnectionStop:
    """Asks the server politely to cancel, once; then closes the socket under the driver, which ends its waiting at once.

    Only what returns in bounded time is called: libpq's own cancel waits for the server, and keeps Python's lock meanwhile.
    """

    def __init__(self, timeouts: Timeouts, kill_query: Callable[[int], None] | None = None) -> None:
        self._timeouts, self._kill_query = timeouts, kill_query
        self._lock = Lock()
        self._raw: Any = None
        self._twin: socket.socket | None = None
        """The connection's socket under a number of our own, which stays ours when the driver closes its own."""
        self._has_asked = False

    def opening(self, opened: socket.socket) -> None:
        """A connection that is being made on this socket."""
        self._twin = opened.dup()

    def opened(self, raw: Any) -> None:
        """The driver's connection, which has let us in."""
        self._raw = raw
        if self._twin is None:
            with suppress(AttributeError, TypeError, ValueError, OSError):  # no socket: a file, or a client over HTTP
                self._twin = socket.socket(fileno=os.dup(raw.fileno()))

    def stop(self) -> None:
        """May be called again and again. What this meets is for the log: the thread that waits gets its own error."""
        with self._lock:
            if self._raw is not None and not self._has_asked:
                self._has_asked = True
                if self._ask_to_cancel():
                    return
            self._shut_down()

    def shut_down(self) -> None:
        with self._lock:
            self._shut_down()

    def end(self) -> None:
        """There is nothing left to stop."""
        with self._lock:
            self._raw = None
            if self._twin is not None:
                self._twin.close()

    def _ask_to_cancel(self) -> bool:
        """Whether the server was asked: it gets a moment then."""
        try:
            if hasattr(self._raw, "cancel_safe") and _cancels_in_time():
                self._raw.cancel_safe(timeout=self._timeouts.cancel.total_seconds())
            elif self._kill_query is not None:
                self._kill_query(int(self._raw.thread_id()))
            else:
                return False
        except Exception as problem:
            logger.info("A server was not reached to cancel a query: %s", type(problem).__name__)
            return False
        return True

    def _shut_down(self) -> None:
        """Both ways, as if the server had gone: whoever waits on it gets an error."""
        try:
            if self._twin is not None:
                self._twin.shutdown(socket.SHUT_RDWR)
            elif hasattr(self._raw, "interrupt"):  # SQLite
                self._raw.interrupt()
            elif self._raw is not None:
                self._raw.close()
        except Exception as problem:
            logger.debug("A connection had ended by itself: %s", type(problem).__name__)


def _cancels_in_time() -> bool:
    import psycopg

    return psycopg.capabilities.has_cancel_safe()
