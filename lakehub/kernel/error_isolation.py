"""What fails alone: one bad dataset, copy or row must not hold up those behind it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)


@contextmanager
def log_and_continue(activity: str) -> Iterator[None]:
    """Logs, with its traceback, what the block raises, and goes on after it. `activity` says in the log what was given up.

    For work that is asked for again until it is done: nothing is claimed or marked as done by a block that failed.
    """
    try:
        yield
    except Exception:
        logger.exception("%s failed and is tried again; the rest goes on", activity)
