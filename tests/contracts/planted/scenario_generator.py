"""A random scenario: the same for the same seed. What it plants, and where, is drawn; what that means is the model's to say."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from tests.contracts.planted import plants
from tests.contracts.planted.calendar import WIDTHS, Period, period_at, periods
from tests.contracts.planted.layouts import KEYS, Layout, PartitionForm, StoredRow, partition_forms
from tests.contracts.planted.scenario import (
    DAY,
    HOUR,
    MINUTE,
    Damage,
    Phase,
    Place,
    Plant,
    Scenario,
    Signal,
    TablePlan,
)

GRAINS = ("day", "hour", "week", "month", "quarter")
SHAPES = ("upstream", "copies", "upstream", "copies", "both", "alone")
"""Whether there is something to compare with. Five grains and six shapes: each meets each."""
COUNTS = {"hour": 9, "day": 8, "week": 7, "month": 7, "quarter": 7}
FINER = {"day": "hour", "week": "day", "month": "day", "quarter": "month"}
ROWS = {"hour": 60, "day": 150, "week": 150, "month": 150, "quarter": 150}
"""At most so many in a period: fewer than are sampled, or compared by a part of them."""
ZONES = {
    "UTC": ("2026-11-17",),
    "America/New_York": ("2026-11-01", "2026-03-08", "2026-07-01"),
    "Europe/Berlin": ("2026-10-25", "2026-03-29"),
    "Asia/Kolkata": ("2026-11-17",),
    "Australia/Lord_Howe": ("2026-04-05", "2026-10-04"),
    "America/St_Johns": ("2026-11-01", "2026-03-08"),
    "Africa/Cairo": ("2026-10-30", "2026-04-24"),
}
"""With days on which clocks change, where they do."""
Draw = Callable[[Sequence[Period]], Plant | None]
"""Plants something in one of these periods, where there is room for it."""
LONG_AGO = datetime(2001, 4, 3, 15, tzinfo=UTC)
CENTERS = ("dc1", "dc2")


@dataclass
class Author:
    seed: int
    dice: random.Random = field(init=False)
    base: dict[str, list[StoredRow]] = field(default_factory=dict)
    used: set[tuple[str, Period]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)

    def write(self) -> Scenario:
        dice = self.dice
        self.grain = GRAINS[self.seed % len(GRAINS)]
        self.zone = dice.choice(sorted(ZONES))
        shape = SHAPES[self.seed % len(SHAPES)]
        self.centers = CENTERS if shape in ("copies", "both") else CENTERS[:1]
        self.has_upstream = shape in ("upstream", "both")
        self.ended = dice.random() < 0.2
        self.tables = self._tables()
        self.target = self.tables[-1]
        self._set_times()
        self._fill()
        first = self._plants_of_first_phase()
        second = self._plants_of_second_phase(first)
        gone = self._gone()
        phases = (self._phase(self.now, first, gone), self._phase(self.later, second, gone))
        return Scenario(self.seed, self.tables, self.calendars, phases, self._refusals())

    # Tables

    def _tables(self) -> tuple[TablePlan, ...]:
        dice = self.dice
        tiers = (0, 1, 2, 3) if self.grain == "hour" else (0, 1, 2, 3, 4, 5)
        key = dice.choice(sorted(KEYS))
        # What does not tell two hours of one name apart cannot be held against what does.
        apart = dice.random() < 0.6
        kinds = {center: dice.choice(["parquet", "parquet", "sqlite"]) for center in self.centers}
        upstream = None
        if self.has_upstream:
            grain = FINER.get(self.grain, self.grain) if dice.random() < 0.4 else self.grain
            those = {center: dice.choice(["parquet", "sqlite"]) for center in self.centers}
            layout = Layout(self.zone, self._form(grain, those.values(), apart), key)
            upstream = TablePlan("bookings", grain, self.zone, dice.choice(tiers), layout, those, False)
        layout = Layout(self.zone, self._form(self.grain, kinds.values(), apart), key)
        by_event_time = not self.has_upstream and dice.random() < 0.7
        table = TablePlan("events", self.grain, self.zone, dice.choice(tiers), layout, kinds, by_event_time, upstream)
        return (table,) if upstream is None else (upstream, table)

    def _form(self, grain: str, kinds: Iterable[str], apart: bool) -> PartitionForm:
        forms = partition_forms(grain)
        fitting = [
            name
            for name, form in forms.items()
            if (form.databases or "sqlite" not in kinds) and (grain != "hour" or form.tells_hours_apart == apart)
        ]
        return forms[self.dice.choice(sorted(fitting))]

    # Times

    def _set_times(self) -> None:
        dice, table = self.dice, self.target
        anchor = datetime.fromisoformat(dice.choice(ZONES[self.zone])).replace(hour=9, tzinfo=UTC)
        width = WIDTHS[self.grain]
        at = period_at(self.grain, self.zone, anchor + dice.randrange(4) * min(width, 2 * DAY))
        self.now = _whole_minute(at.start + (at.end - at.start) * dice.uniform(0.05, 0.95))
        self.noticed_after = max(plan.promise.noticed_after for plan in self.tables)
        self.settled_after = self.noticed_after + max(plan.promise.settled_after for plan in self.tables)
        least = self.now + self.settled_after + MINUTE
        self.later = _whole_minute(least + width * dice.uniform(0.2, 2))
        self.data_until = LONG_AGO if self.ended else self.later
        last = period_at(self.grain, self.zone, self.data_until).end
        self.data_from = self._start_of_data()
        self.calendars = {
            plan.name: tuple(
                sorted(
                    {
                        *periods(plan.grain, plan.zone, self.data_from, last),
                        *periods(plan.grain, plan.zone, self.now - width, self.later + self.settled_after + width),
                    }
                )
            )
            for plan in self.tables
        }
        shown = self.calendars[table.name]
        self.ended_by = min(self.now, self.data_until)
        self.history = [period for period in shown if period.end <= self.ended_by]

    def _start_of_data(self) -> datetime:
        begin = min(self.now, self.data_until)
        count = COUNTS[self.grain]
        shown = periods(self.grain, self.zone, begin - (count + 1) * WIDTHS[self.grain], begin)
        return shown[-count - 1].start

    def _fill(self) -> None:
        dice, number = self.dice, 0
        finest = self.tables[0]
        rows: list[tuple[int, datetime, int]] = []
        for period in self.calendars[self.target.name]:
            if period.start >= self.data_until or period.start < self.data_from:
                continue
            count = dice.choice([ROWS[self.grain], ROWS[self.grain] // 2, ROWS[self.grain] - 7])
            for _ in range(count):
                seconds = int((period.end - period.start).total_seconds())
                number += 1
                rows.append((number, period.start + timedelta(seconds=dice.randrange(seconds)), dice.randrange(1000)))
            if finest is not self.target:  # none of the finer ones is empty
                for part in self.calendars[finest.name]:
                    if period.holds(part.start):
                        number += 1
                        rows.append((number, part.start + MINUTE, dice.randrange(1000)))
        for plan in self.tables:
            shown = self.calendars[plan.name]
            self.base[plan.name] = [StoredRow(number, at, _period_of(shown, at), amount) for number, at, amount in rows]

    # Phases

    def _phase(self, now: datetime, planted: Sequence[Plant], gone: tuple[Place, ...]) -> Phase:
        tables = {}
        for plan in self.tables:
            for place in plan.places:
                rows = [row for row in self.base[plan.name] if row.at < now]
                for plant in planted:
                    rows = plant.damage(rows) if plant.place == place else rows
                tables[place] = rows
        return Phase(now, now + self.noticed_after, now + self.settled_after, tables, tuple(planted), gone)

    def _gone(self) -> tuple[Place, ...]:
        """A copy that is never read: its table is gone before the first look."""
        return (Place("events", "dc2"),) if self.seed % 12 == 7 else ()

    def _plants_of_first_phase(self) -> list[Plant]:
        kinds = self._kinds()
        draws = self.dice.sample(kinds, min(3, len(kinds)))
        return [plant for draw in draws if (plant := draw(self.history)) is not None]

    def _plants_of_second_phase(self, first: Sequence[Plant]) -> list[Plant]:
        """Some of what was late has come; some of what was there is gone."""
        stay = [plant for plant in first if self.dice.random() < 0.5]
        shown = [period for period in self.calendars["events"] if self.data_from <= period.start]
        ended = [period for period in shown if period.end <= min(self.later, self.data_until)]
        # A change of values only is not seen in a table that others write: docs/checks.md.
        kinds = [kind for kind in self._kinds() if kind != self._changed]
        draws = self.dice.sample(kinds, 2)
        planted = [plant for draw in draws if (plant := draw(ended)) is not None]
        return [*stay, *planted, *self._lost_upstream_too(stay)]

    def _lost_upstream_too(self, stay: Sequence[Plant]) -> Iterator[Plant]:
        """What lacked rows of upstream has nothing to be compared with any more: that mends nothing."""
        for plant in stay if self.has_upstream else ():
            if plant.kind == "lost rows" and plant.period is not None:
                place = Place("bookings", plant.place.center)
                part = self._in_table(place, plant.period)
                yield self._planted(
                    "lost upstream too", place, part, plants.lose_all(part), (place, "completeness", part)
                )

    def _refusals(self) -> dict[str, str]:
        refusals = {}
        if len(self.centers) > 1 and self.dice.random() < 0.5:
            refusals["copies"] = "dc1 and dc2 would read the same"
        if self.dice.random() < 0.5:
            refusals["partition_form"] = "is not a form of a partition"
        return refusals

    # Plants

    def _kinds(self) -> list[Draw]:
        compared = self.has_upstream or (len(self.centers) > 1 and not self._gone())
        anywhere: list[Draw] = [
            self._lost_period,
            self._doubled,
            self._moved,
            self._stale,
            self._unreadable,
            self._ahead,
        ]
        if not self.has_upstream and self.target.by_event_time:
            anywhere.append(self._stale_with_event_ahead)
        if compared:
            anywhere += [self._lost_rows, self._lost_rows, self._surplus, self._too_few_lost, self._stale_after_hole]
        if len(self.centers) > 1 and not self._gone():
            anywhere.append(self._changed)
        return anywhere

    def _place(self) -> Place:
        return self.dice.choice([place for place in self.target.places if place not in self._gone()])

    def _any_place(self) -> Place:
        """Sometimes upstream."""
        if self.has_upstream and self.dice.random() < 0.25:
            return Place("bookings", self.dice.choice(self.centers))
        return self._place()

    def _free(self, among: Sequence[Period], name: str = "events") -> Period | None:
        """In the middle, with a name of its own, and with nothing planted in it."""
        names = [period.local for period in self.calendars[name]]
        free = [
            period for period in among[1:-2] if ("events", period) not in self.used and names.count(period.local) == 1
        ]
        if not free:
            return None
        period = self.dice.choice(free)
        self.used.add(("events", period))
        return period

    def _in_table(self, place: Place, period: Period) -> Period:
        """The period itself, or where upstream is cut finer one of those in it."""
        plan = self._plan(place)
        if plan.grain == self.grain:
            return period
        return self.dice.choice([part for part in self.calendars[plan.name] if period.holds(part.start)])

    def _plan(self, place: Place) -> TablePlan:
        return next(plan for plan in self.tables if plan.name == place.dataset)

    def _count(self, place: Place, period: Period) -> int:
        return sum(row.period == period for row in self.base[place.dataset])

    def _planted(
        self, kind: str, place: Place, period: Period, damage: Damage, *signals: tuple[Place, str, Period]
    ) -> Plant:
        named = tuple(Signal(where, category, over.start) for where, category, over in signals)
        slowest = max(self._plan(signal[0]).promise.freshness for signal in signals) if signals else timedelta()
        ends = max((over.end for _, _, over in signals), default=period.end)
        return Plant(kind, place, period, damage, named, ends + slowest)

    def _compared_signals(self, place: Place, period: Period) -> list[tuple[Place, str, Period]]:
        """By whom rows that are missing in the place are missed."""
        upstream = [(place, "completeness", period)] if self.has_upstream else []
        return upstream or [(place, "consistency", period)]

    def _lost_rows(self, among: Sequence[Period]) -> Plant | None:
        place, period = self._place(), self._free(among)
        if period is None:
            return None
        count = self._count(place, period)
        promise = self._plan(place).promise
        share = promise.completeness if self.has_upstream else promise.consistency
        lost = self.dice.choice([_just_too_many(share, count), count // 3 + 1, count - 1])
        damage = plants.lose(period, lost, self.dice.randrange(999))
        return self._planted("lost rows", place, period, damage, *self._compared_signals(place, period))

    def _too_few_lost(self, among: Sequence[Period]) -> Plant | None:
        """As many as the tier allows: nothing is told."""
        place, period = self._place(), self._free(among)
        if period is None:
            return None
        promise, count = self._plan(place).promise, self._count(place, period)
        lost = _just_too_many(max(promise.completeness, promise.consistency), count) - 1
        if not lost:
            return None
        return self._planted("too few lost", place, period, plants.lose(period, lost, self.dice.randrange(999)))

    def _surplus(self, among: Sequence[Period]) -> Plant | None:
        place, period = self._place(), self._free(among)
        if period is None:
            return None
        others = [other for other in self.target.places if other != place and other not in self._gone()]
        signals = [(place, "completeness", period)] if self.has_upstream else [(others[0], "consistency", period)] if others else []  # fmt: skip
        if not signals:
            return None
        damage = plants.add(period, self._count(place, period) // 10 + 2)
        return self._planted("surplus", place, period, damage, *signals)

    def _lost_period(self, among: Sequence[Period]) -> Plant | None:
        place, period = self._any_place(), self._free(among)
        if period is None:
            return None
        part = self._in_table(place, period)
        return self._planted("lost period", place, part, plants.lose_all(part), (place, "completeness", part))

    def _doubled(self, among: Sequence[Period]) -> Plant | None:
        place, period = self._any_place(), self._free(among)
        if period is None:
            return None
        part = self._in_table(place, period)
        count = self._count(place, part)
        double = self.dice.choice([max(1, math.ceil(count * Fraction(6, 100))), count // 2 + 1])
        damage = plants.double(part, double, self.dice.randrange(999))
        return self._planted("doubled", place, part, damage, (place, "duplicates", part))

    def _moved(self, among: Sequence[Period]) -> Plant | None:
        place, period = self._place(), self._free(among)
        to = self._free(among)
        if period is None or to is None:
            return None
        return self._planted("moved", place, period, plants.move(period, to), (place, "completeness", period))

    def _changed(self, among: Sequence[Period]) -> Plant | None:
        place, period = self._place(), self._free(among)
        if period is None:
            return None
        count = self._count(place, period)
        damage = plants.change(period, count // 8 + 1, self.dice.randrange(999))
        signals = [(other, "consistency", period) for other in self.target.places]
        return self._planted("changed", place, period, damage, *signals)

    def _stale(self, among: Sequence[Period]) -> Plant | None:
        """The newest periods have not come."""
        place = self._place()
        newest = [*among[-2:], *(period for period in self.calendars["events"] if period.start >= among[-1].end)]
        lost = plants.lose_all(*newest)
        if ("events", among[-3]) in self.used:
            return None
        self.used |= {("events", period) for period in among[-3:]}
        # Where upstream ended too, what is missing is a hole.
        signals = [(place, category, newest[0]) for category in ("freshness", "completeness")]
        return self._planted("stale", place, newest[0], lost, *signals[: 1 + self.has_upstream])

    def _stale_after_hole(self, among: Sequence[Period]) -> Plant | None:
        """And the period before the last that came lacks rows: one incident of which a part is no lateness."""
        hole = among[-4]
        if ("events", hole) in self.used or (stale := self._stale(among)) is None:
            return None
        self.used.add(("events", hole))
        lost = plants.lose(hole, self._count(stale.place, hole) // 3 + 1, self.dice.randrange(999))
        damage = plants.together(stale.damage, lost)
        signals = self._compared_signals(stale.place, hole)
        return self._planted("stale after a hole", stale.place, hole, damage, *signals)

    def _stale_with_event_ahead(self, among: Sequence[Period]) -> Plant | None:
        """And an event of years ahead would keep it fresh."""
        stale = self._stale(among)
        if stale is None:
            return None
        ahead = plants.date_ahead(timedelta(days=5 * 365))
        return replace(stale, kind="event ahead", damage=plants.together(stale.damage, ahead))

    def _unreadable(self, among: Sequence[Period]) -> Plant | None:
        place = self._place()
        damage = plants.misplace(None, self.dice.randrange(1, 5), among[1].start)
        return Plant("unreadable", place, None, damage, (Signal(place, "ingestion", None),))

    def _ahead(self, among: Sequence[Period]) -> Plant | None:
        place = self._place()
        far = period_at(self.grain, self.zone, datetime(2031, 5, 5, 12, tzinfo=UTC))
        damage = plants.misplace(far, self.dice.randrange(1, 5), far.start + HOUR)
        return Plant("ahead", place, far, damage, (Signal(place, "ingestion", far.start),))


def write(seed: int) -> Scenario:
    return Author(seed).write()


def _just_too_many(share: Fraction, count: int) -> int:
    """The least number of lost rows with which no more than `share` is left."""
    return math.ceil(count * (1 - share))


def _period_of(shown: Sequence[Period], at: datetime) -> Period:
    return next(period for period in shown if period.holds(at))


def _whole_minute(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(second=0, microsecond=0)
