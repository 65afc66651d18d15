"""How long a backfill still takes, by how long its chunks took."""

from __future__ import annotations

from datetime import timedelta


def backfill_time_left(*, took: timedelta, done: int, left: int) -> timedelta | None:
    """`took`: the chunks that are done, with `done` partitions, added up. None: none is done yet, so nobody can say."""
    return max(timedelta(), took) * (left / done) if done else None
