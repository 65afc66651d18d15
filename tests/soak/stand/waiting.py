"""Waiting for what an instance does, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

_LOOK_EVERY_S = 0.2


class NotInTime(AssertionError):
    """What was waited for did not come within a deadline that follows the machine."""


def wait_until(holds: Callable[[], bool], what: str, within_s: float) -> None:
    """Raises NotInTime."""
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            raise NotInTime(f"{what}: not within {within_s:.0f} s")
        time.sleep(_LOOK_EVERY_S)
