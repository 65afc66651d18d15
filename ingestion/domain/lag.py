"""How far the lake is behind the source (RULES.md, Ingestion)."""

from __future__ import annotations

from datetime import datetime, timedelta

STALE_AFTER_INTERVALS = 3
"""A source that was not looked at successfully for more than this many intervals is not known."""


def lag(*, complete_upto: datetime | None, every: timedelta, now: datetime) -> timedelta | None:
    """Since when a source commit may be waiting: everything up to `complete_upto` is queryable, what came later is not known to be.

    So it is zero only at a look and grows until the next. None (unknown): no look has succeeded, or the last one is stale.
    """
    if complete_upto is None or now - complete_upto > STALE_AFTER_INTERVALS * every:
        return None
    return max(timedelta(), now - complete_upto)
