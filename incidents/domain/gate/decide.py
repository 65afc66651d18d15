"""The query gate: may one read this copy over this range now?

The verdict over a range Q is the worst over the copy's gating tests and the partitions that meet Q, so that widening Q
never improves it and the verdict of a union is the worst of its parts. A policy turns (verdict, reason) into allow or
block. A test whose last result has become too old arrives as UNKNOWN with the reason `stale` (quality.domain.verdicts), and each
policy says whether that blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from incidents.domain.gate.causes import IN_GRACE, Cause, causes_of
from incidents.domain.gate.copy_state import CopyState
from lakehub.kernel.interval import Interval, clip_to, subtract
from lakehub.kernel.outcome import Verdict, worst_verdict

DEFAULT_RETRY_AFTER = timedelta(minutes=5)
"""When nothing known says when a blocker may go."""
MIN_RETRY_AFTER = timedelta(seconds=1)

STRICT_BLOCKS = frozenset({Verdict.FAIL, Verdict.UNKNOWN, Verdict.WARN})
LENIENT_BLOCKS = frozenset({Verdict.FAIL})
DEFAULT_BLOCKS = frozenset({Verdict.FAIL, Verdict.UNKNOWN})


@dataclass(frozen=True)
class Policy:
    """What a consumer does with a verdict: `blocks` names verdicts (`unknown`) or one reason of one (`unknown:not_due`).

    What is in grace does not count yet: it blocks only where it is named, as in `fail:in_grace`. A policy in the shadow
    never blocks: the answer says what it would have done.
    """

    name: str = "default"
    blocks: frozenset[str] = DEFAULT_BLOCKS
    shadow: bool = False

    def is_blocked_by(self, cause: Cause) -> bool:
        if f"{cause.verdict}:{cause.reason}" in self.blocks:
            return True
        return cause.verdict in self.blocks and cause.reason != IN_GRACE


@dataclass(frozen=True)
class Override:
    """A person's word that `data` may be read whatever the verdict: why, and until when."""

    number: int
    data: Interval
    by: str
    reason: str
    expires_at: datetime
    consumer: str = ""
    """Empty: everybody's."""


@dataclass(frozen=True)
class GateDecision:
    """Worst first in `causes`; `retry_at` is None where it is allowed. `overrides`: those in force that meet the question."""

    verdict: Verdict
    allowed: bool
    causes: tuple[Cause, ...]
    blockers: tuple[Cause, ...] = field(default=())
    retry_at: datetime | None = None
    would_allow: bool = True
    """What the policy makes of it; `allowed` is the same but for one in the shadow."""
    overrides: tuple[Override, ...] = ()

    def retry_after(self, *, now: datetime) -> timedelta | None:
        """How long to wait before asking again; at least a second."""
        return None if self.retry_at is None else max(MIN_RETRY_AFTER, self.retry_at - now)


def evaluate(
    data_range: Interval, copy: CopyState, policy: Policy, *, now: datetime, overrides: Iterable[Override] = ()
) -> GateDecision:
    """The gate's answer about `data_range`. An override changes no verdict: it takes what blocks within its range out of the way."""
    causes = causes_of(data_range, copy, now)
    in_force = tuple(
        override for override in overrides if now < override.expires_at and override.data.overlaps(data_range)
    )
    excused = [override.data for override in in_force]
    blockers = tuple(
        cause for cause in causes if policy.is_blocked_by(cause) and _is_not_overridden(cause, data_range, excused)
    )
    allowed = not blockers or policy.shadow
    return GateDecision(
        verdict=worst_verdict(cause.verdict for cause in causes),
        allowed=allowed,
        causes=causes,
        blockers=blockers,
        retry_at=None if allowed else _retry_at(blockers, now),
        would_allow=not blockers,
        overrides=in_force,
    )


def _is_not_overridden(cause: Cause, data_range: Interval, excused: list[Interval]) -> bool:
    """Something of what was asked for, and that the cause is about, lies outside the overrides."""
    return not excused or bool(subtract(clip_to(cause.ranges, data_range), excused))


def _retry_at(blockers: tuple[Cause, ...], now: datetime) -> datetime:
    """The earliest recovery, rerun or due time that is still to come: one that has passed says nothing."""
    instants = (at for cause in blockers for at in (cause.eta, cause.changes_at) if at is not None and at > now)
    return min(instants, default=now + DEFAULT_RETRY_AFTER)
