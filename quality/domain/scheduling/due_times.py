"""What makes a unit due: its partition must be whole, a failure is tried again, the cadence comes round, or a commit touched it."""

from __future__ import annotations

from datetime import datetime, timedelta

from lakehub.kernel.backoff import Backoff
from lakehub.kernel.interval import Interval, later
from quality.domain.scheduling.rerun_backoff import RerunAt, next_rerun
from quality.domain.verdicts.unit_verdict import UnitFacts, retest_overdue_at

OVERDUE_AFTER = timedelta(minutes=10)
"""A retest that did not happen so long after it was due makes the verdict UNKNOWN."""


def first_due_at(partition: Interval, due_after: timedelta) -> datetime:
    """When a partition must be whole."""
    return later(partition.end, due_after)


def rerun_or_cadence(
    facts: UnitFacts, *, reruns: int, cadence: timedelta | None, backoff: Backoff, jitter: float, now: datetime
) -> tuple[datetime | None, int]:
    """After a run: when it is tried again or its cadence comes round, whichever is first, and how many reruns there were then."""
    decision = next_rerun(facts, reruns=reruns, backoff=backoff, jitter=jitter, now=now)
    regular = None if cadence is None else later(now, cadence)
    if isinstance(decision, RerunAt):
        return (decision.at if regular is None else min(decision.at, regular)), reruns + 1
    return regular, 0


def retest_at(facts: UnitFacts, read_at: datetime) -> datetime | None:
    """After a commit. Only a PASS settles what it touched; but a FAIL that has read the commit is rerun in its own rhythm."""
    overdue_at = retest_overdue_at(facts, read_at)
    return None if overdue_at is None else max(read_at, overdue_at - OVERDUE_AFTER)
