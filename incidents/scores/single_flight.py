"""Scores of a long window take seconds of the processor: a process computes one at a time, so that its threads stay free for others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore, Lock

from lakehub.kernel.errors import Busy

MAX_IN_LINE = 2
"""One that computes, and one that waits for it."""
RETRY_AFTER_SECONDS = 5
_inside, _at_work = BoundedSemaphore(MAX_IN_LINE), Lock()


@contextmanager
def exclusive_computation() -> Iterator[None]:
    """Waits for whoever is at work. Raises Busy at once where somebody waits already."""
    with queue_slot(), _at_work:
        yield


@contextmanager
def queue_slot() -> Iterator[None]:
    if not _inside.acquire(blocking=False):
        raise Busy(
            "Scores are being computed for others. Ask again in a few seconds.", retry_after_s=RETRY_AFTER_SECONDS
        )
    try:
        yield
    finally:
        _inside.release()
