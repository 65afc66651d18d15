"""When a unit that failed, or whose test could not run, is tried again: a decision, carried out elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lakehub.kernel.backoff import Backoff
from lakehub.kernel.outcome import Outcome
from quality.domain.verdicts.unit_verdict import UnitFacts


class RerunReason(StrEnum):
    BACKOFF = "backoff"
    END_OF_SUSTAIN = "end_of_sustain"
    COULD_NOT_RUN = "could_not_run"


@dataclass(frozen=True)
class RerunAt:
    """Run the unit again at `at`."""

    at: datetime
    reason: RerunReason


@dataclass(frozen=True)
class NoRerun:
    """Nothing to repeat; the unit waits for its cadence or for a commit."""

    reason: str


def next_rerun(facts: UnitFacts, *, reruns: int, backoff: Backoff, jitter: float, now: datetime) -> RerunAt | NoRerun:
    """What follows the latest execution. `reruns`: how many this trouble has had so far; `jitter` is uniform in [0, 1).

    A failing streak is rerun `min(cap, base * 2^k)` apart with jitter, plus once at f + S, where one more FAIL settles
    that it is sustained. An ERROR or NO_DATA is tried again in the same rhythm.
    """
    if facts.waiver is not None:
        return NoRerun(f"waived as {facts.waiver}")
    retry_at = now + backoff.delay(reruns, jitter)
    if facts.is_failing:
        return _rerun_of_streak(facts, retry_at, now)
    if facts.latest_outcome in (Outcome.ERROR, Outcome.NO_DATA):
        return RerunAt(retry_at, RerunReason.COULD_NOT_RUN)
    return NoRerun("not failing")


def _rerun_of_streak(facts: UnitFacts, retry_at: datetime, now: datetime) -> RerunAt:
    sustained_at, last = facts.sustained_at, facts.last_fail_at
    if sustained_at is None or last is None or last >= sustained_at or sustained_at >= retry_at:
        return RerunAt(retry_at, RerunReason.BACKOFF)
    if facts.latest_at is not None and facts.latest_at >= sustained_at:
        # The run at f + S happened but could not tell (ERROR, NO_DATA): go on in the rhythm of the backoff.
        return RerunAt(retry_at, RerunReason.BACKOFF)
    return RerunAt(max(now, sustained_at), RerunReason.END_OF_SUSTAIN)
