"""One timeout for all the scans of one side."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

from quality.engines.scans.parts import CannotRead
from quality.engines.scans.scan import Limits


class RemainingTime:
    """The limits of one side, with what is left of its time since it was made: all its scans share that."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._ends_at = time.monotonic() + limits.timeout.total_seconds()

    def limits(self) -> Limits:
        """For the next scan. Raises CannotRead where no time is left."""
        seconds = self._ends_at - time.monotonic()
        if seconds <= 0:
            raise CannotRead("the exchange took longer than its timeout")
        # Not less than a millisecond: to some databases none means that there is no limit.
        return replace(self._limits, timeout=timedelta(seconds=max(seconds, 0.001)))
