"""When a task of the workers has something to do: what each app tells the pacemaker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Wakeup:
    """A task and what it is sent for. It may be sent for nothing, and twice: what there is to do is found in the database."""

    task: str
    at_least_every: timedelta
    """Sent so long after the last time, whatever is due: a net below, and the rhythm of what looks outside of the database."""
    on_change: bool = False
    """Sent when anything was written: it takes in what others have done."""
    next_due: Callable[[datetime], datetime | None] | None = None
    """Of what time alone brings: the earliest instant at which there is something to do, by the instance's clock, given what
    time it is. None: nothing is planned. A few looks into an index."""
    at_most_every: timedelta = timedelta(seconds=1)


def earliest(*instants: datetime | None) -> datetime | None:
    """Of those that there are."""
    return min((at for at in instants if at is not None), default=None)
