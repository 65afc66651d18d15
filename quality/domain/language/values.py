"""What a node is worth once measured: an amount, or the reason that there is none. A failure is a value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import TypeAlias
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.partitions import Grain, shifted_partition
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
    due_after: timedelta = timedelta()
    """How long after its end a partition must be there."""
    event_zone: ZoneInfo | None = None
    """Of event times without a zone; None: that of the dataset."""
    awaited: frozenset[Interval] = frozenset()
    """Partitions of which upstream holds rows, or of which the copy has held some, whatever the calendar says."""

    @property
    def expects_rows(self) -> bool:
        """Rows are expected in the partition: that there are none is a value then, 0, and no lack of one."""
        if self.partition.is_everything or self.partition in self.awaited:
            return True
        return not self.why_no_rows

    @property
    def why_no_rows(self) -> str:
        """Why none are expected by the time, the calendar and the start of monitoring; empty where they are."""
        if self.monitored_since is not None and self.partition.end <= self.monitored_since:
            return "none are expected before monitoring began"
        if self.production_calendar is not None and not self.production_calendar.expects(self.partition):
            return "the calendar expects none"
        return "" if self.now >= self.partition.end + self.due_after else "none are due yet"

    def count(self, counted: int, *, rows: int) -> Value:
        """`counted` of so many rows. Of none where some are expected it is known too: 0."""
        if rows or self.expects_rows:
            return Known(Fraction(counted))
        return no_data(f"there are no rows, and {self.why_no_rows}")

    def shifted(self, shift: timedelta) -> EvaluationContext:
        """As seen from the partition moved by `shift`. Before all times nothing is expected."""
        if not shift:
            return self
        try:
            partition = shifted_partition(self.partition, shift, self.grain, self.zone)
        except ValueError:
            return self
        return replace(self, partition=partition)
