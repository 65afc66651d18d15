"""What the gate knows about one copy: its gating tests with their units as judged now, and the reports about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import BEGINNING, FOREVER, Interval
from lakehub.kernel.outcome import Verdict
from lakehub.kernel.partitions import Grain
from quality.domain.timeliness.production_calendar import ProductionCalendar


class UnitState(NamedTuple):
    """One unit as judged now. `is_failing`: it fails, sustained or not. `next_run_at`: its next rerun.

    `has_verdict`: it passed or failed at some time. What never did is UNKNOWN.
    """

    data: Interval
    verdict: Verdict
    reason: str
    is_failing: bool = False
    next_run_at: datetime | None = None
    incident: int | None = None
    eta: datetime | None = None
    changed_at: datetime | None = None
    """When the latest commit touched it that no PASS has read yet."""
    retest_due_at: datetime | None = None
    has_verdict: bool = True


@dataclass(frozen=True)
class PartitionTest:
    """A gating test with a unit for each partition; a partition must be whole `due_after` after its end."""

    key: str
    category: str
    due_after: timedelta
    units: tuple[UnitState, ...] = ()
    covers_from: datetime = BEGINNING
    """It looks back, and says nothing of the partitions before this one: there is too little past."""
    added_at: datetime = BEGINNING
    """It was added to a dataset that was monitored already: of partitions that were over by then, it gates those that it has
    judged, so that a new rule does not block the past."""


@dataclass(frozen=True)
class WholeTest:
    """A gating test with one unit, for the table as a whole."""

    key: str
    category: str
    unit: UnitState | None = None
    is_added: bool = False
    """To a dataset that was monitored already: it gates once it has judged the table."""

    @property
    def is_gating(self) -> bool:
        return not self.is_added or (self.unit is not None and self.unit.has_verdict)


@dataclass(frozen=True)
class FreshnessTest:
    """The copy is complete up to `complete_to`, c; None: not known. The verdict counts over [c, infinity)."""

    key: str
    due_after: timedelta
    unit: UnitState | None = None
    complete_to: datetime | None = None

    @property
    def category(self) -> str:
        return "freshness"


@dataclass(frozen=True)
class FindingTest:
    """What ingestion saw: units only where there was something to see."""

    key: str
    category: str
    units: tuple[UnitState, ...] = ()


GatingTest = PartitionTest | WholeTest | FreshnessTest | FindingTest


@dataclass(frozen=True)
class ReportFacts:
    """A user's report about a range; `acknowledged` by the producer, or still waiting."""

    incident: int
    data: Interval
    acknowledged: bool
    eta: datetime | None = None


@dataclass(frozen=True)
class CopyState:
    """What is known about one copy."""

    grain: Grain
    zone: ZoneInfo
    monitored_from: datetime | None
    tests: tuple[GatingTest, ...] = ()
    reports: tuple[ReportFacts, ...] = ()
    grace_until: datetime | None = None
    production_calendar: ProductionCalendar | None = None
    """When partitions are produced; None: all of them are."""
    partitions_seen_at: datetime = FOREVER
    """When it was seen last which partitions hold rows, of a copy that Lakehub only reads: what ended later may hold some."""
