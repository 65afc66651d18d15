"""How long a phase still takes, by how long its part so far took."""

from __future__ import annotations

from datetime import timedelta

MIN_SHARE = 0.02
MIN_ELAPSED = timedelta(seconds=5)
"""Before that much an estimate would jump."""


def time_left(elapsed: timedelta, done: int, total: int | None) -> timedelta | None:
    """None where nothing can be said: the total is not known, too little is done, or all of it."""
    if not total or done >= total or done / total < MIN_SHARE or elapsed < MIN_ELAPSED:
        return None
    return elapsed * ((total - done) / done)
