"""A story of planted defects: tables, what is in them at two times, and what was planted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import NamedTuple

from tests.contracts.planted.calendar import Period
from tests.contracts.planted.layouts import Layout, StoredRow

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class Promise(NamedTuple):
    """What a tier promises, as docs/concepts.md has it."""

    freshness: timedelta
    completeness: Fraction
    duplicates: Fraction
    consistency: Fraction
    cadence: timedelta
    longest_rerun: timedelta
    debounce: timedelta

    @property
    def noticed_after(self) -> timedelta:
        """So long after a change a look at the table has seen it."""
        return self.cadence + MINUTE

    @property
    def settled_after(self) -> timedelta:
        """And so long after that every test that it concerns has been run again."""
        return max(self.debounce, self.cadence, self.longest_rerun * 11 / 10) + MINUTE


def _share(percent: str) -> Fraction:
    return Fraction(percent) / 100


PROMISES = {
    0: Promise(HOUR, _share("99.99"), _share("0"), _share("99.99"), 5 * MINUTE, 15 * MINUTE, MINUTE),
    1: Promise(2 * HOUR, _share("99.9"), _share("0"), _share("99.9"), 15 * MINUTE, 30 * MINUTE, 2 * MINUTE),
    2: Promise(4 * HOUR, _share("99.9"), _share("0.1"), _share("99.9"), 30 * MINUTE, HOUR, 5 * MINUTE),
    3: Promise(12 * HOUR, _share("99.5"), _share("0.5"), _share("99.5"), HOUR, 2 * HOUR, 10 * MINUTE),
    4: Promise(DAY, _share("99"), _share("1"), _share("99"), 6 * HOUR, 6 * HOUR, 30 * MINUTE),
    5: Promise(3 * DAY, _share("95"), _share("5"), _share("95"), DAY, DAY, HOUR),
}


class Place(NamedTuple):
    """A copy of a dataset in a data center."""

    dataset: str
    center: str


@dataclass(frozen=True)
class TablePlan:
    """A dataset. `kinds` says for each data center whether the copy is Parquet or SQLite."""

    name: str
    grain: str
    zone: str
    tier: int
    layout: Layout
    kinds: Mapping[str, str]
    by_event_time: bool
    upstream: TablePlan | None = None

    @property
    def promise(self) -> Promise:
        return PROMISES[self.tier]

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(Place(self.name, center) for center in self.kinds)


class Signal(NamedTuple):
    """That something is wrong with a category of a copy over a range; `start` None: over all of it."""

    place: Place
    category: str
    start: datetime | None


Damage = Callable[[Sequence[StoredRow]], list[StoredRow]]


@dataclass(frozen=True)
class Plant:
    """A defect in one table. One of `signals` must be given by `period` due: none, where it is too small to count."""

    kind: str
    place: Place
    period: Period | None
    damage: Damage = field(repr=False)
    signals: tuple[Signal, ...]
    due_at: datetime | None = None
    """When the signal is due: before, the rows may still come."""


@dataclass(frozen=True)
class Phase:
    """What is in each table from `now` on; all that it changes is settled at `settled_at`."""

    now: datetime
    noticed_at: datetime
    settled_at: datetime
    tables: Mapping[Place, Sequence[StoredRow]]
    plants: tuple[Plant, ...]
    gone: tuple[Place, ...] = ()
    """Their tables cannot be read any more."""


@dataclass(frozen=True)
class Scenario:
    seed: int
    tables: tuple[TablePlan, ...]
    """Upstream before what comes from it."""
    calendars: Mapping[str, tuple[Period, ...]]
    """By table, all that hold rows or could, and those around now."""
    phases: tuple[Phase, ...]
    refusals: Mapping[str, str]
    """By field what is said first, and refused, and what of that is named."""
