"""Test messages hold a thread that answers people for as long as a receiver is silent: few are sent at once in a process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from lakehub.kernel.errors import Busy

PLACES = 2
RETRY_AFTER_S = 10
"""A channel waits no longer for its receiver."""
_senders: set[str] = set()
_lock = Lock()


@contextmanager
def trial_place(person: str) -> Iterator[None]:
    """Of `person`, by user name, one at a time; of all in this process PLACES. Raises Busy at once where there is none."""
    with _lock:
        if person in _senders:
            raise _busy("A test message of yours is on its way, and each person has one at a time.")
        if len(_senders) >= PLACES:
            raise _busy(f"{PLACES} test messages of others are on their way, and no more are sent at once.")
        _senders.add(person)
    try:
        yield
    finally:
        with _lock:
            _senders.discard(person)


def _busy(why: str) -> Busy:
    return Busy(f"{why} Try again in {RETRY_AFTER_S} seconds.", retry_after_s=RETRY_AFTER_S)
