"""Ending whatever a block reads of databases, from another thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from lakehub.source_databases.stop import ConnectionStop


class Interruption:
    """The connections that a block has open. Once it is interrupted they end, and no other one is opened."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stops = set[ConnectionStop]()
        self.reason = ""

    def interrupt(self, reason: str) -> None:
        """May be called again and again: what was not at work yet could not be stopped the first time."""
        with self._lock:
            self.reason = reason
            stops = list(self._stops)
        for stop in stops:
            stop.stop()

    def add(self, stop: ConnectionStop) -> None:
        with self._lock:
            self._stops.add(stop)

    def remove(self, stop: ConnectionStop) -> None:
        with self._lock:
            self._stops.discard(stop)


_current: ContextVar[Interruption | None] = ContextVar("interruption", default=None)


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """What this thread opens in the block can be ended by the interruption."""
    interruption = Interruption()
    token = _current.set(interruption)
    try:
        yield interruption
    finally:
        _current.reset(token)


def current_interruption() -> Interruption | None:
    return _current.get()
