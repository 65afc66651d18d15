"""What runs too long is stopped from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Timer


@contextmanager
def deadline(timeout: timedelta, stop: Callable[[], object]) -> Iterator[None]:
    """Calls `stop` in a thread of its own where the block has not ended in time."""
    timer = Timer(timeout.total_seconds(), stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
