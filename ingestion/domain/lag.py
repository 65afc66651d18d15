"""How far the lake is behind the source (RULES.md, Ingestion)."""

from __future__ import annotations

from datetime import datetime, timedelta

HEARTBEAT_TOLERANCE = 3
"""A source that was not heard of for this many intervals is stale."""


def event_lag(*, queryable_at: datetime, committed_at: datetime) -> timedelta:
    """From the commit in the source to the commit in the lake; never negative, clocks differ."""
    return max(timedelta(), queryable_at - committed_at)


def dataset_lag(
    *, oldest_pending_at: datetime | None, heard_at: datetime | None, every: timedelta, now: datetime
) -> timedelta | None:
    """The age of the oldest source commit not yet queryable, zero if there is none, None (unknown) where the source's heartbeat is stale."""
    if heard_at is None or now - heard_at > HEARTBEAT_TOLERANCE * every:
        return None
    return timedelta() if oldest_pending_at is None else max(timedelta(), now - oldest_pending_at)
