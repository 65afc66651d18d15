"""How long a period may be that a person writes: what is computed from it stays within the calendar."""

from __future__ import annotations

from datetime import timedelta

MAX_PERIOD = timedelta(days=366)
"""A sustain period, a cadence, an SLA. A longer one that was stored before is a fault of its test."""
MAX_DURATION = timedelta(days=36_525)
"""Any duration, such as the one that an age is compared with: a hundred years."""


def is_bounded(*periods: timedelta | None) -> bool:
    return all(period is None or timedelta() <= period <= MAX_PERIOD for period in periods)
