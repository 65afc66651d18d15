"""Which category explains which other one of the same dataset: pairs (by, suppressed) without a cycle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakehub.kernel.interval import Interval

FRESHNESS = "freshness"
CATEGORIES = ("freshness", "completeness", "duplicates", "consistency", "ingestion", "others")

SuppressionPair = tuple[str, str]
"""(by, suppressed)"""

DEFAULT_PAIRS: frozenset[SuppressionPair] = frozenset((FRESHNESS, other) for other in CATEGORIES if other != FRESHNESS)
"""Late data explains everything else."""


def effective_pairs(edits: Iterable[tuple[str, str, bool]]) -> frozenset[SuppressionPair]:
    """The default with what a dataset changed of it: (by, suppressed, whether it counts)."""
    changed = {(by, suppressed): counts for by, suppressed, counts in edits}
    added = {pair for pair, counts in changed.items() if counts}
    return (DEFAULT_PAIRS | added) - {pair for pair, counts in changed.items() if not counts}


def suppressors_of(category: str, pairs: Iterable[SuppressionPair]) -> frozenset[str]:
    """The categories that hold its messages. A chain holds as each link does: not what the suppressor's suppressor explains."""
    return frozenset(by for by, suppressed in pairs if suppressed == category)


def cycle_in(pairs: Iterable[SuppressionPair]) -> tuple[str, ...]:
    """A shortest way from a category back to itself, such as (freshness, ingestion, freshness); empty where there is none."""
    edges = frozenset(pairs)
    ways = (_shortest_cycle_from(start, edges) for start in sorted({by for by, _ in edges}))
    return min((way for way in ways if way), key=len, default=())


def _shortest_cycle_from(start: str, edges: frozenset[SuppressionPair]) -> tuple[str, ...]:
    ways: list[tuple[str, ...]] = [(start,)]
    visited = set[str]()
    while ways:
        way = ways.pop(0)
        for by, suppressed in sorted(edges):
            if by != way[-1] or suppressed in visited:
                continue
            if suppressed == start:
                return (*way, start)
            visited.add(suppressed)
            ways.append((*way, suppressed))
    return ()


MAX_RERUN_WAIT = timedelta(minutes=30)
"""How long a message waits for the reruns asked for at its release; a test that cannot run must not keep it back."""


@dataclass(frozen=True)
class Suppressor:
    """The freshness of `copy` is failing (WARN or FAIL); `data` is what is stale; `incident` where one is open.

    With another category: what that says is wrong.
    """

    copy: int
    data: Interval
    incident: int | None = None
    name: str = ""
    category: str = FRESHNESS

    def __str__(self) -> str:
        problem = "is stale" if self.category == FRESHNESS else f"fails in {self.category}"
        return f"{self.name or 'its data'} {problem}" + (f": #{self.incident}" if self.incident else "")


@dataclass(frozen=True)
class MessageSubject:
    """The incident that a message is about: the copies involved (a comparison involves both) and what is affected now."""

    category: str
    copies: frozenset[int]
    affected: tuple[Interval, ...]
    is_failing: bool = True
    """Some unit of it fails now."""
    snoozed_until: datetime | None = None
    grace_until: datetime | None = None
    retested_at: datetime | None = None
    """When the last of its active units was tested: the oldest of their latest results."""
    suppressors: frozenset[str] | None = None
    """The categories that hold its messages; None: those of the default."""

    @property
    def suppressing_categories(self) -> frozenset[str]:
        return suppressors_of(self.category, DEFAULT_PAIRS) if self.suppressors is None else self.suppressors


@dataclass(frozen=True)
class HoldMessage:
    """Keep the message; look again at `until`, or (None) when the freshness of `by` changes."""

    why: str
    by: Suppressor | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class RerunFirst:
    """What held it is over: run the units again before anybody is told."""


@dataclass(frozen=True)
class AwaitRerun:
    """The reruns that were asked for are not all done; after `until` it goes out without them."""

    until: datetime


@dataclass(frozen=True)
class SendNow:
    pass


@dataclass(frozen=True)
class DropMessage:
    """Nobody needs to hear it any more."""

    why: str


SendDecision = HoldMessage | RerunFirst | AwaitRerun | SendNow | DropMessage


def find_suppressor(subject: MessageSubject, stale: Iterable[Suppressor]) -> Suppressor | None:
    """The stale copy that explains the incident, if there is one."""
    explains = (
        late for late in stale if late.category in subject.suppressing_categories and late.copy in subject.copies
    )
    return next((late for late in explains if _covers_or_meets(late, subject.affected)), None)


def decide_sending(
    subject: MessageSubject, stale: Iterable[Suppressor], *, was_held: bool, released_at: datetime | None, now: datetime
) -> SendDecision:
    """What to do now with the message that an incident opened. `was_held`: by stale data, until `released_at`."""
    if not subject.is_failing:
        return DropMessage("resolved before it was sent") if not was_held else DropMessage("resolved while it was held")
    if (late := find_suppressor(subject, stale)) is not None:
        return HoldMessage(str(late), by=late)
    if (quiet := _silenced(subject, now)) is not None:
        return quiet
    if not was_held:
        return SendNow()
    if released_at is None:
        return RerunFirst()
    if _retested_since(subject, released_at) or now >= released_at + MAX_RERUN_WAIT:
        return SendNow()
    return AwaitRerun(released_at + MAX_RERUN_WAIT)


def _silenced(subject: MessageSubject, now: datetime) -> HoldMessage | None:
    if subject.grace_until is not None and now < subject.grace_until:
        return HoldMessage("in grace", until=subject.grace_until)
    if subject.snoozed_until is not None and now < subject.snoozed_until:
        return HoldMessage("snoozed", until=subject.snoozed_until)
    return None


def _retested_since(subject: MessageSubject, instant: datetime) -> bool:
    return subject.retested_at is not None and subject.retested_at >= instant


def _covers_or_meets(suppressor: Suppressor, affected: Iterable[Interval]) -> bool:
    """Late data explains what lies after its front, and not a hole before it: that is told at once."""
    if suppressor.category == FRESHNESS:
        return all(suppressor.data.covers(data) for data in affected)
    return any(suppressor.data.overlaps(data) for data in affected)
