"""Waiting for something that another process does: look again and again until a deadline, which a slow machine has later."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

from lakehub.setup.machine import scaled as scaled

LOOK_EVERY_S = 0.05


def wait_until(holds: Callable[[], bool], *, within_s: float = 30, otherwise: Callable[[], str] = lambda: "") -> None:
    """Returns as soon as it holds. Fails after `within_s` of a quiet machine with what `otherwise` tells."""
    within_s = scaled(within_s)
    deadline, pause = time.monotonic() + within_s, Event()
    while not holds():
        assert time.monotonic() < deadline, f"It did not hold within {within_s:.0f} s. {otherwise()}"
        pause.wait(LOOK_EVERY_S)
