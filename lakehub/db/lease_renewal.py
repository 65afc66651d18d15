"""A lease that is kept as long as the work takes which it is for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from datetime import timedelta
from threading import Event, Thread

from django.db import Error, connection

logger = logging.getLogger(__name__)


@contextmanager
def keep_renewed(renew: Callable[[], None], *, every: timedelta) -> Iterator[None]:
    """Calls `renew` again and again while the block runs, from a thread with a database connection of its own."""
    done = Event()
    work = (_renew_until_done, renew, every, done)
    thread = Thread(target=copy_context().run, args=work, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _renew_until_done(renew: Callable[[], None], every: timedelta, done: Event) -> None:
    try:
        while not done.wait(every.total_seconds()):
            _renew_once(renew)
    finally:
        connection.close()


def _renew_once(renew: Callable[[], None]) -> None:
    """A database that is busy or restarts costs one renewal, not the lease: the next one has a new connection."""
    try:
        renew()
    except Error:
        logger.warning("A lease could not be renewed this time; it is tried again", exc_info=True)
        connection.close()
