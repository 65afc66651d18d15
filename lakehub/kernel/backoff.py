"""When to try again: exponential growth up to a cap, with jitter that the caller draws."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Backoff:
    """`min(cap, base * 2^attempt)`, spread by up to `spread` of itself."""

    base: timedelta
    cap: timedelta
    spread: float = 0.1

    def delay(self, attempt: int, jitter: float) -> timedelta:
        """The wait after failed attempt number `attempt` (from 0); `jitter` is uniform in [0, 1)."""
        if attempt < 0:
            raise ValueError(f"Attempts are counted from 0, not {attempt}.")
        doublings = min(attempt, 62)
        wait = self.cap if doublings >= 40 else min(self.cap, self.base * 2**doublings)
        return wait * (1 + self.spread * jitter)
