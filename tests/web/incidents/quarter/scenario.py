"""What happens in a quarter, drawn from a seed: a fleet, what is really wrong with its data and when, and what people do.

A story knows nothing of verdicts and incidents. What a test would find on a range at a minute is in it (`outcome`), so
that the machine and the book, which run tests when each thinks fit, find the same. Everything happens on whole minutes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import BEGINNING, FOREVER

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
START = datetime(2026, 2, 1, tzinfo=UTC)
"""The clocks of New York change on 8 March: one day of the quarter has 23 hours."""

Range = tuple[datetime, datetime]
EVER: Range = (BEGINNING, FOREVER)


class Promise(NamedTuple):
    """What a tier promises, as docs/checks.md says it; but cadences are longer, to run no million tests, and the times at
    which a partition must be whole nearer to each other, so that those of many datasets are run in one go."""

    sustain: timedelta
    base: timedelta
    cap: timedelta
    debounce: timedelta
    due_after: timedelta
    cadence: timedelta


TIERS = (
    Promise(15 * MINUTE, MINUTE, 15 * MINUTE, MINUTE, HOUR, DAY),
    Promise(30 * MINUTE, 2 * MINUTE, 30 * MINUTE, 2 * MINUTE, HOUR, 2 * DAY),
    Promise(HOUR, 5 * MINUTE, HOUR, 5 * MINUTE, HOUR, 2 * DAY),
    Promise(2 * HOUR, 10 * MINUTE, 2 * HOUR, 10 * MINUTE, HOUR, 3 * DAY),
    Promise(6 * HOUR, 30 * MINUTE, 6 * HOUR, 30 * MINUTE, 25 * HOUR, 2 * DAY),
    Promise(DAY, HOUR, DAY, HOUR, 73 * HOUR, 5 * DAY),
)


@dataclass(frozen=True)
class TestPlan:
    """`whole`: it runs on a cadence over the table as a whole. `compares`: with the copy in dc1, so that it runs in dc2 only."""

    __test__ = False

    key: str
    category: str
    whole: bool = False
    compares: bool = False


FRESHNESS = TestPlan("freshness", "freshness", whole=True)


@dataclass(frozen=True)
class DatasetPlan:
    """A dataset, from the minute it is onboarded on; `history` days before that are monitored too."""

    name: str
    tier: int
    grain: str
    zone: ZoneInfo
    centers: tuple[str, ...]
    tests: tuple[TestPlan, ...]
    begins: datetime
    history: int = 2
    grace: timedelta = timedelta()
    upstream: str = ""

    @property
    def promise(self) -> Promise:
        return TIERS[self.tier]

    @property
    def monitored_from(self) -> datetime:
        return self.floor(self.begins - self.history * DAY)

    def centers_of(self, test: TestPlan) -> tuple[str, ...]:
        return self.centers[1:] if test.compares else self.centers

    # The calendar, by the wall clock

    def floor(self, at: datetime) -> datetime:
        """The partition boundary at or before an instant."""
        if self.grain == "hour":
            return at.replace(minute=0, second=0, microsecond=0)
        local = at.astimezone(self.zone).date()
        return self._midnight(local.replace(day=1) if self.grain == "month" else local)

    def after(self, boundary: datetime) -> datetime:
        """The next boundary after a boundary."""
        if self.grain == "hour":
            return boundary + HOUR
        local = boundary.astimezone(self.zone).date()
        if self.grain == "month":
            return self._midnight((local.replace(day=1) + 32 * DAY).replace(day=1))
        return self._midnight(local + DAY)

    def before(self, boundary: datetime) -> datetime:
        return self.floor(boundary - MINUTE)

    def partitions(self, start: datetime, end: datetime) -> list[Range]:
        """Those that meet [start, end)."""
        spans, begin = [], self.floor(start)
        while begin < end:
            spans.append((begin, self.after(begin)))
            begin = self.after(begin)
        return spans

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time(), self.zone).astimezone(UTC)


class Key(NamedTuple):
    """A unit: a test on a copy and a range."""

    dataset: str
    test: str
    center: str
    start: datetime
    end: datetime

    def __str__(self) -> str:
        over = "everything" if self.start == BEGINNING else f"{self.start:%m-%d %H:%M}..{self.end:%m-%d %H:%M}"
        return f"{self.dataset}/{self.test}@{self.center} {over}"


@dataclass(frozen=True)
class Trouble:
    """From `start` to `end` a test of a copy finds `outcome` on what meets `data`; with a `period` only every other one."""

    dataset: str
    test: str
    center: str
    start: datetime
    end: datetime
    outcome: str
    data: Range = EVER
    period: timedelta | None = None

    def says(self, key: Key, at: datetime) -> str | None:
        if key.center != self.center or not self.start <= at < self.end or not meet(self.data, (key.start, key.end)):
            return None
        if self.period is not None and (at - self.start) // self.period % 2:
            return "PASS"
        return self.outcome


class Late(NamedTuple):
    """From `start` to `end` a copy is complete up to `boundary` only."""

    start: datetime
    end: datetime
    boundary: datetime


class Act(NamedTuple):
    """Somebody or something does this at that minute; what it is about is in the details."""

    at: datetime
    what: str
    dataset: str
    details: dict[str, Any]


@dataclass
class Scenario:
    seed: int
    days: int
    fleet: dict[str, DatasetPlan] = field(default_factory=dict)
    troubles: defaultdict[tuple[str, str], list[Trouble]] = field(default_factory=lambda: defaultdict(list))
    late: defaultdict[tuple[str, str], list[Late]] = field(default_factory=lambda: defaultdict(list))
    acts: defaultdict[datetime, list[Act]] = field(default_factory=lambda: defaultdict(list))
    outages: list[Range] = field(default_factory=list)
    """No test is run by anybody."""

    @property
    def end(self) -> datetime:
        return START + self.days * DAY

    def minutes(self) -> Iterator[datetime]:
        at = START
        while at <= self.end:
            yield at
            at += MINUTE

    def next_turn(self, after: datetime) -> datetime:
        """When the story itself goes on: somebody acts, a dataset begins, a grace period, a snooze or an outage is over."""
        return self.turns[bisect_right(self.turns, after)]

    @cached_property
    def turns(self) -> list[datetime]:
        chosen_ends = [act.details["until"] for acts in self.acts.values() for act in acts if "until" in act.details]
        plans = [at for plan in self.fleet.values() for at in (plan.begins, plan.begins + plan.grace)]
        return sorted(
            {*self.acts, *chosen_ends, *plans, *(end for _, end in self.outages), self.end, self.end + MINUTE}
        )

    def workers_are_down(self, at: datetime) -> bool:
        return any(start <= at < end for start, end in self.outages)

    def outcome(self, key: Key, at: datetime) -> str:
        """What the test finds if it is run then."""
        outcomes = (trouble.says(key, at) for trouble in self.troubles[key.dataset, key.test])
        planted = next((outcome for outcome in outcomes if outcome is not None), None)
        if planted is not None or key.test != FRESHNESS.key:
            return planted or "PASS"
        plan = self.fleet[key.dataset]
        wanted = plan.floor(at - plan.promise.due_after)
        return "PASS" if self.boundary(key.dataset, key.center, at) >= wanted else "FAIL"

    def boundary(self, dataset: str, center: str, at: datetime) -> datetime:
        """c: before it the copy is complete."""
        late = [period.boundary for period in self.late[dataset, center] if period.start <= at < period.end]
        return min([*late, self.fleet[dataset].floor(at)])

    def jitter(self, at: datetime) -> float:
        """In [0, 1), the same for all that is run at that minute."""
        return (((at - START) // MINUTE + self.seed * 7919) * 2654435761 % 2**32) / 2**32


def meet(first: Range, other: Range) -> bool:
    return first[0] < other[1] and other[0] < first[1]


def whole_minute(at: datetime) -> datetime:
    """The first whole minute at or after it: nobody wakes up in between."""
    floor = at.replace(second=0, microsecond=0)
    return floor if floor == at else floor + MINUTE
