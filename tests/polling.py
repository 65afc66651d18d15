"""Waiting for something that another process does: look again and again until a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

LOOK_EVERY_S = 0.05


def wait_until(holds: Callable[[], bool], *, within_s: float = 30, otherwise: Callable[[], str] = lambda: "") -> None:
    """Returns as soon as it holds. Fails after `within_s` with what `otherwise` tells."""
    deadline, pause = time.monotonic() + within_s, Event()
    while not holds():
        assert time.monotonic() < deadline, f"It did not hold within {within_s} s. {otherwise()}"
        pause.wait(LOOK_EVERY_S)
