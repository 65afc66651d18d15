"""When to try again: exponential growth up to a cap, with jitter that the caller draws."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Backoff:
    """`min(cap, base * 2^attempt)`, spread by up to `jitter_share` of itself."""

    base: timedelta
    cap: timedelta
    jitter_share: float = 0.1

    def __post_init__(self) -> None:
        if self.base <= timedelta():
            raise ValueError(f"The first wait of a backoff must be longer than nothing, not {self.base}.")

    def delay(self, attempt: int, jitter: float) -> timedelta:
        """The wait after failed attempt number `attempt` (from 0); `jitter` is uniform in [0, 1)."""
        if attempt < 0:
            raise ValueError(f"Attempts are counted from 0, not {attempt}.")
        # Compared as a ratio: a doubled base may be longer than any timedelta.
        beyond = 2 ** min(attempt, 64) >= self.cap / self.base
        wait = self.cap if beyond else self.base * 2**attempt
        return wait * (1 + self.jitter_share * jitter)
