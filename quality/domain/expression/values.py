"""What a node is worth once measured: an amount, or the reason that there is none. A failure is a value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias
from zoneinfo import ZoneInfo

from lakehub.kernel.calendar import Grain
from lakehub.kernel.outcome import Outcome
from quality.domain.expression.nodes import Amount


@dataclass(frozen=True)
class Known:
    """`complete_until` is c of the freshness rule, where the leaf found one."""

    amount: Amount
    complete_until: datetime | None = None


@dataclass(frozen=True)
class Failed:
    """`outcome` is NO_DATA or ERROR; `cause` is a sentence for people."""

    outcome: Outcome
    cause: str


_UTC = ZoneInfo("UTC")

Value: TypeAlias = Known | Failed


def no_data(cause: str) -> Failed:
    return Failed(Outcome.NO_DATA, cause)


def error(cause: str) -> Failed:
    return Failed(Outcome.ERROR, cause)


@dataclass(frozen=True)
class Moment:
    """What a leaf may know besides its measures: the time, the calendar of the dataset, how far back it is watched."""

    now: datetime
    grain: Grain = Grain.NONE
    zone: ZoneInfo = _UTC
    since: datetime | None = None
