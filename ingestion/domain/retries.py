"""What to do after a job has failed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from lakehub.kernel.backoff import Backoff

MAX_ATTEMPTS = 5
BACKOFF = Backoff(base=timedelta(seconds=5), cap=timedelta(minutes=5))


@dataclass(frozen=True)
class RetryAt:
    at: datetime


@dataclass(frozen=True)
class GiveUp:
    reason: str


def decide_after_failure(attempt: int, *, now: datetime, jitter: float) -> RetryAt | GiveUp:
    """`attempt` counts from 1; `jitter` is uniform in [0, 1)."""
    if attempt >= MAX_ATTEMPTS:
        return GiveUp(f"it failed {attempt} times")
    return RetryAt(now + BACKOFF.delay(attempt - 1, jitter))
