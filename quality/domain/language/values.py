"""What a node is worth once measured: an amount, or the reason that there is none. A failure is a value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.partitions import Grain
from quality.domain.language.tree.nodes import Amount
from quality.domain.timeliness.production_calendar import ProductionCalendar


@dataclass(frozen=True)
class Known:
    """`complete_until` is c of the freshness rule, where the leaf found one; `facts` explain the amount to people."""

    amount: Amount
    complete_until: datetime | None = None
    facts: tuple[tuple[str, str], ...] = ()


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
class EvaluationContext:
    """What a leaf may know besides its measures: the time, the calendar of the dataset, how far back it is watched, the
    partition that is tested, and the ranges that were part of a confirmed incident."""

    now: datetime
    grain: Grain = Grain.NONE
    zone: ZoneInfo = _UTC
    monitored_since: datetime | None = None
    partition: Interval = EVERYTHING
    excluded_ranges: tuple[Interval, ...] = ()
    production_calendar: ProductionCalendar | None = None
    """When the partitions are produced; None: all of them are."""
