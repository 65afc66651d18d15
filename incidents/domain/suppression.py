"""Messages that are held: late data explains a failure, so its message waits until the data is there.

The message of an incident of any category but freshness is held while the freshness of a copy involved is failing (WARN
counts) and what is stale meets what the incident affects. A dataset may have other rules (incidents.domain.precedence):
then a category in the place of freshness holds, on the copies of the dataset itself. A grace period and a snooze hold
messages too. What is held never changes a verdict. When what held it recovers, the incident's units are rerun; the
message goes out if they still fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from incidents.domain.precedence import DEFAULT, FRESHNESS, suppressors_of
from lakehub.kernel.interval import Interval

RERUN_PATIENCE = timedelta(minutes=30)
"""How long a message waits for the reruns asked for at its release; a test that cannot run must not keep it back."""


@dataclass(frozen=True)
class StaleCopy:
    """The freshness of `copy` is failing (WARN or FAIL); `data` is what is stale; `incident` where one is open.

    With another category: what that says is wrong.
    """

    copy: int
    data: Interval
    incident: int | None = None
    name: str = ""
    category: str = FRESHNESS

    def __str__(self) -> str:
        what = "is stale" if self.category == FRESHNESS else f"fails in {self.category}"
        return f"{self.name or 'its data'} {what}" + (f": #{self.incident}" if self.incident else "")


@dataclass(frozen=True)
class Subject:
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
    def held_by(self) -> frozenset[str]:
        return suppressors_of(self.category, DEFAULT) if self.suppressors is None else self.suppressors


@dataclass(frozen=True)
class Hold:
    """Keep the message; look again at `until`, or (None) when the freshness of `by` changes."""

    why: str
    by: StaleCopy | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Rerun:
    """What held it is over: run the units again before anybody is told."""


@dataclass(frozen=True)
class AwaitRerun:
    """The reruns that were asked for are not all done; after `until` it goes out without them."""

    until: datetime


@dataclass(frozen=True)
class Send:
    pass


@dataclass(frozen=True)
class Drop:
    """Nobody needs to hear it any more."""

    why: str


Decision = Hold | Rerun | AwaitRerun | Send | Drop


def suppressor(subject: Subject, stale: Iterable[StaleCopy]) -> StaleCopy | None:
    """The stale copy that explains the incident, if there is one."""
    explains = (late for late in stale if late.category in subject.held_by and late.copy in subject.copies)
    return next((late for late in explains if _meets(late.data, subject.affected)), None)


def decide(
    subject: Subject, stale: Iterable[StaleCopy], *, was_held: bool, released_at: datetime | None, now: datetime
) -> Decision:
    """What to do now with the message that an incident opened. `was_held`: by stale data, until `released_at`."""
    if not subject.is_failing:
        return Drop("resolved before it was sent") if not was_held else Drop("resolved while it was held")
    if (late := suppressor(subject, stale)) is not None:
        return Hold(str(late), by=late)
    if (quiet := _quiet(subject, now)) is not None:
        return quiet
    if not was_held:
        return Send()
    if released_at is None:
        return Rerun()
    if _retested_since(subject, released_at) or now >= released_at + RERUN_PATIENCE:
        return Send()
    return AwaitRerun(released_at + RERUN_PATIENCE)


def _quiet(subject: Subject, now: datetime) -> Hold | None:
    if subject.grace_until is not None and now < subject.grace_until:
        return Hold("in grace", until=subject.grace_until)
    if subject.snoozed_until is not None and now < subject.snoozed_until:
        return Hold("snoozed", until=subject.snoozed_until)
    return None


def _retested_since(subject: Subject, instant: datetime) -> bool:
    return subject.retested_at is not None and subject.retested_at >= instant


def _meets(data: Interval, ranges: Iterable[Interval]) -> bool:
    return any(data.meets(other) for other in ranges)
