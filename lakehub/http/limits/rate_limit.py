"""How often somebody may ask: so many a second on average, and a burst of some seconds' worth at once.

One number is kept for each asker, the time at which what they were given so far is used up (the generic cell rate algorithm), in
a file that the processes of a machine share, under a lock of its eight bytes: exact for all of them together, and a few
microseconds. Each machine counts for itself.
"""

from __future__ import annotations

import fcntl
import logging
import math
import os
import struct
import threading
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

logger = logging.getLogger(__name__)

BURST_SECONDS = 5
"""So many seconds' worth may come at once."""
_FLOAT64 = struct.Struct("<d")


@dataclass(frozen=True)
class RateLimit:
    """`rate` a second, `burst` at once."""

    rate: float
    burst: float

    def after_taking(self, used_to: float, cost: float, *, now: float) -> tuple[float, float]:
        """Until when it is used up then, and how many seconds to wait: 0 where `cost` may be taken now.

        What costs more than a burst is let through as a whole burst: it could never pass otherwise.
        """
        if cost <= 0:
            return used_to, 0.0  # nothing is given back
        if used_to > now + self.burst / self.rate:
            used_to = now  # the clock was set back
        after = max(used_to, now) + min(cost, self.burst) / self.rate
        wait = after - now - self.burst / self.rate
        return (after, 0.0) if wait <= 1e-9 else (used_to, wait)


class SharedLimiter:
    """By the number of who asks. The file is made on first use; to lose it forgives everybody once."""

    def __init__(self, file: Path) -> None:
        self._file, self._threads, self._descriptor, self._pid = file, threading.Lock(), -1, -1

    def take(self, asker: int, limit: RateLimit, *, cost: float = 1, now: datetime) -> float:
        """How many seconds to wait; 0: taken, or nobody can count: a full disk must not stop whoever only reads."""
        try:
            with self._threads:  # locks of files hold between processes only
                return self._take(asker * _FLOAT64.size, limit, cost, now.timestamp())
        except OSError as error:
            # As often as `lakehub.logs.repeats` lets it through.
            logger.warning(
                "Requests are not counted, and all are let through, as %s cannot be used: %s", self._file.name, error
            )
            return 0.0

    def _take(self, place: int, limit: RateLimit, cost: float, at: float) -> float:
        descriptor = self._opened()
        fcntl.lockf(descriptor, fcntl.LOCK_EX, _FLOAT64.size, place)
        try:
            used_to, wait = limit.after_taking(_stored(descriptor, place), cost, now=at)
            if wait == 0:
                os.pwrite(descriptor, _FLOAT64.pack(used_to), place)
        finally:
            fcntl.lockf(descriptor, fcntl.LOCK_UN, _FLOAT64.size, place)
        return wait

    def _opened(self) -> int:
        if self._pid != os.getpid():
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o600)
            self._pid = os.getpid()
        return self._descriptor


def _stored(descriptor: int, place: int) -> float:
    """0 where there is none, or what no time can be: that would be compared wrongly for good, or lock somebody out."""
    stored = os.pread(descriptor, _FLOAT64.size, place)
    used_to: float = _FLOAT64.unpack(stored)[0] if len(stored) == _FLOAT64.size else 0.0
    return used_to if math.isfinite(used_to) else 0.0
