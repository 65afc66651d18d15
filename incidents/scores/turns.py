"""Scores of a long window take seconds of the processor: a process computes one at a time, so that its threads stay free for others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock

from lakehub.kernel.errors import Busy

AT_ONCE = 2
"""One that computes, and one that waits for it."""
WAIT_S = 5
_inside, _at_work = BoundedSemaphore(AT_ONCE), Lock()


@contextmanager
def turn() -> Iterator[None]:
    """Waits for whoever is at work. Raises Busy at once where somebody waits already."""
    with in_line(), _at_work:
        yield


@contextmanager
def in_line() -> Iterator[None]:
    if not _inside.acquire(blocking=False):
        raise Busy("Scores are being computed for others. Ask again in a few seconds.", wait_s=WAIT_S)
    try:
        yield
    finally:
        _inside.release()
