"""What runs too long is stopped from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread

STOP_RETRY_INTERVAL = timedelta(seconds=1)


@contextmanager
def deadline(timeout: timedelta, stop: Callable[[], object]) -> Iterator[Event]:
    """Calls `stop` in a thread of its own where the block has not ended in time; the event is set from then on.

    And again, until it has: what was not at work yet at the first call could not be stopped by it.
    """
    ended, is_over = Event(), Event()

    def watch() -> None:
        wait = timeout
        while not ended.wait(wait.total_seconds()):
            is_over.set()
            stop()
            wait = STOP_RETRY_INTERVAL

    Thread(target=watch, name="deadline", daemon=True).start()
    try:
        yield is_over
    finally:
        ended.set()
