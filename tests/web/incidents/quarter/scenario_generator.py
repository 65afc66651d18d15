"""Writes a story from a seed: each dataset has trouble every few days, of a kind that is drawn."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.web.incidents.quarter.scenario import (
    DAY,
    EVER,
    FRESHNESS,
    HOUR,
    MINUTE,
    START,
    Act,
    DatasetPlan,
    Late,
    Range,
    Scenario,
    TestPlan,
    Trouble,
)

NEW_YORK, UTC_ZONE = ZoneInfo("America/New_York"), ZoneInfo("UTC")
DUPLICATES = TestPlan("duplicates", "duplicates")
ROWS = TestPlan("rows", "completeness")
SAME = TestPlan("row_count@dc1", "consistency", compares=True)
NULLS = TestPlan("nulls", "others")
RANGE = TestPlan("range", "others")
WHOLE = TestPlan("whole", "others", whole=True)
BOTH, ONE = ("dc1", "dc2"), ("dc1",)


def write(seed: int, days: int = 90) -> Scenario:
    story = Scenario(seed, days)
    dice = random.Random(seed)
    for plan in fleet(dice, days):
        story.fleet[plan.name] = plan
    for plan in story.fleet.values():
        Author(story, plan, dice).write()
    for trouble in dice.sample(
        [planted for mine in story.troubles.values() for planted in mine if planted.outcome == "FAIL"], 4
    ):
        promise = story.fleet[trouble.dataset].promise
        start = trouble.start + promise.debounce + dice.randrange(2, max(3, promise.sustain // MINUTE // 2)) * MINUTE
        story.outages.append((start, start + min(3 * promise.sustain, 15 * HOUR)))
    return story


def fleet(dice: random.Random, days: int) -> list[DatasetPlan]:
    def plan(
        name: str, tier: int, centers: tuple[str, ...], *tests: TestPlan, since: float = 0, **more: Any
    ) -> DatasetPlan:
        begins = START + dice.randrange(3) * DAY + round(since * days) * DAY + 6 * HOUR
        return DatasetPlan(
            name, tier, **{"grain": "day", "zone": NEW_YORK, "begins": begins, **more}, centers=centers, tests=tests
        )

    return [
        plan("flights", 0, BOTH, FRESHNESS, DUPLICATES, SAME, NULLS),
        plan("weather", 1, ONE, FRESHNESS, ROWS, grace=2 * DAY),
        plan("planes", 2, BOTH, FRESHNESS, SAME, NULLS, RANGE, zone=UTC_ZONE, since=0.4),
        plan("delays", 1, BOTH, ROWS, DUPLICATES, upstream="flights", since=0.6),
        plan("routes", 3, BOTH, FRESHNESS, ROWS, SAME, upstream="planes", since=0.5),
        plan("crews", 4, ONE, FRESHNESS, DUPLICATES, NULLS, grace=7 * DAY, since=0.5),
        plan("archive", 5, ONE, FRESHNESS, NULLS, since=0.2),
        plan("airlines", 3, BOTH, WHOLE, grain="none", since=0.3),
        plan("airports", 5, BOTH, WHOLE, grain="none"),
        plan("fares", 2, ONE, DUPLICATES, NULLS, grain="month"),
        plan("clicks", 0, ONE, DUPLICATES, grain="hour", history=0, since=0.97),
        plan("agents", 4, BOTH, WHOLE, RANGE, since=0.7),
    ]


class Author:
    """Of one dataset."""

    def __init__(self, story: Scenario, plan: DatasetPlan, dice: random.Random) -> None:
        self.story, self.plan, self.dice = story, plan, dice
        self.sustain = plan.promise.sustain

    def write(self) -> None:
        at = self.plan.begins + DAY
        while at < self.story.end - DAY:
            self.dice.choice(self.kinds())(at)
            at += self.minutes(3 * DAY, 14 * DAY) if self.plan.grain != "hour" else self.minutes(DAY / 4, DAY)
        for _ in range(10):
            self.ask(self.plan.begins + self.minutes(DAY, self.story.end - self.plan.begins - DAY))

    def kinds(self) -> list[Callable[[datetime], object]]:
        always: list[Callable[[datetime], object]] = [
            self.real, self.noise, self.unable, self.back, self.forced, self.forced, self.handled, self.told, self.touched,
        ]  # fmt: skip
        late: list[Callable[[datetime], object]] = (
            [self.stale, self.stale, self.stale] if FRESHNESS in self.plan.tests else []
        )
        apart: list[Callable[[datetime], object]] = [self.combined, self.found] if self.plan.grain == "day" else []
        return always + late + apart

    # Kinds of trouble

    def real(self, at: datetime, lasts: timedelta | None = None, outcome: str = "FAIL") -> Trouble:
        """The newest partition is wrong from its first test on, or some are from a commit on, until they are repaired."""
        test = self.any_test()
        center = self.dice.choice(self.plan.centers_of(test))
        data, due = self.newest(at, 1 + self.dice.randrange(3), test)
        start = at
        if at - due < DAY and self.dice.random() < 0.5:
            start, data = due, self.newest(at, 1, test)[0]
        elif not test.whole:
            self.commit(at, center, self.plan.partitions(*data))
        return self.trouble(
            test, center, start, at + (lasts or self.minutes(self.sustain / 2, 6 * self.sustain)), outcome, data
        )

    def noise(self, at: datetime) -> None:
        """It fails and passes in turn, never for the sustain period."""
        made = self.real(at)
        self.flap(made, self.minutes(self.sustain / 4, self.sustain * 3 / 4))

    def back(self, at: datetime) -> None:
        """It passes, and fails again within a day or so: a commit brings it back."""
        made = self.real(at, 4 * self.sustain)
        again = made.end + self.dice.choice([self.minutes(HOUR, 20 * HOUR), self.minutes(25 * HOUR, 40 * HOUR)])
        test = next(planned for planned in self.plan.tests if planned.key == made.test)
        self.trouble(test, made.center, again, again + 4 * self.sustain, "FAIL", made.data)
        self.commit(again, made.center, [made.data])

    def unable(self, at: datetime) -> None:
        """The test could not run for a while, in the middle of a failure or on its own."""
        outcome = self.dice.choice(["ERROR", "NO_DATA", "SKIPPED"])
        made = self.real(at, self.minutes(self.sustain / 2, 3 * self.sustain), outcome)
        test = next(planned for planned in self.plan.tests if planned.key == made.test)
        if self.dice.random() < 0.6:
            self.trouble(test, made.center, made.start - HOUR, made.end + 4 * self.sustain, "FAIL", made.data)

    def stale(self, at: datetime) -> None:
        """The data comes late, in two pieces at times; what is missing shows in other tests too, for as long or longer.

        Every other time a day before the front is wrong too, which being late does not explain.
        """
        center = self.dice.choice(self.plan.centers)
        hole = self.older(at, 1)
        ends = at + self.minutes(3 * self.sustain, 6 * self.sustain)
        middle = self.dice.choice([ends, at + self.minutes(self.sustain, 2 * self.sustain)])
        late = self.story.late[self.plan.name, center]
        late.append(Late(at, middle, self.plan.before(hole[0])))
        late.append(Late(middle, ends, hole[0]))
        self.act(at + MINUTE, "run_now", test=FRESHNESS.key, center=center)
        earlier = self.plan.before(hole[0])
        holes = [hole] if len(late) % 4 else [hole, (self.plan.before(earlier), earlier)]
        self.commit(at, center, holes)
        for test in self.plan.tests:
            if test is not FRESHNESS and center in self.plan.centers_of(test) and self.dice.random() < 0.8:
                until = ends + self.dice.choice([-1, 0, 1, 3]) * self.minutes(MINUTE, self.sustain)
                for affected in holes:
                    self.trouble(test, center, at, until, "FAIL", affected)

    def touched(self, at: datetime) -> None:
        """Late data: a commit into old partitions, which fail then, or pass, or cannot be tested for long."""
        center = self.dice.choice(self.plan.centers)
        old = [self.older(at, self.dice.randrange(1, 6)) for _ in range(2)]
        self.commit(at, center, old)
        outcome = self.dice.choice(["FAIL", "FAIL", "PASS", "ERROR"])
        test = self.any_test()
        if center in self.plan.centers_of(test):
            self.trouble(test, center, at, at + self.minutes(self.sustain, 5 * self.sustain), outcome, old[0])

    def forced(self, at: datetime) -> None:
        """A person says that the alarm is wrong, or that it is true and stays; some take it back, some change the test."""
        lasts = min(8 * self.sustain, 5 * DAY)
        made = self.real(at, lasts)
        test = next(planned for planned in self.plan.tests if planned.key == made.test)
        when = at + min(self.minutes(2 * self.sustain, 3 * self.sustain), lasts)
        how = self.dice.choice(["false_positive", "accepted"])
        self.act(when, "resolve", category=test.category, how=how)
        then = self.dice.random()
        if then < 0.3:
            self.act(when + self.minutes(MINUTE, 3 * self.sustain), "reopen", category=test.category)
        elif then < 0.5:
            self.act(when + self.minutes(MINUTE, 3 * self.sustain), "new_version", test=test.key)
        else:  # it passes, and fails once more
            again = made.end + self.minutes(2 * self.plan.promise.debounce, HOUR + 2 * self.plan.promise.debounce)
            self.commit(made.end, made.center, [made.data])
            self.commit(again, made.center, [made.data])
            self.trouble(test, made.center, again, again + 3 * self.sustain, "FAIL", made.data)

    def handled(self, at: datetime) -> None:
        """People acknowledge, snooze, say when it will be over, and rerun."""
        made = self.real(at, self.minutes(2 * self.sustain, 8 * self.sustain))
        category = next(planned.category for planned in self.plan.tests if planned.key == made.test)
        for what in self.dice.sample(["acknowledge", "release", "snooze", "eta", "comment", "rerun"], 4):
            when = at + self.minutes(self.sustain, 4 * self.sustain)
            until = when + self.dice.randrange(1, 30) * HOUR
            self.act(when, what, category=category, until=until)
        self.act(made.end + MINUTE, "rerun", category=category)

    def combined(self, at: datetime) -> None:
        """Two holes far apart are two incidents; somebody merges them, and splits them again."""
        test = self.dice.choice([planned for planned in self.plan.tests if not planned.whole])
        center = self.dice.choice(self.plan.centers_of(test))
        holes = [self.older(at, ago) for ago in (1, 2, 6)]
        ends = at + 7 * self.sustain
        for hole in holes:
            self.trouble(test, center, at, ends, "FAIL", hole)
        self.commit(at, center, holes)
        merged = at + self.plan.promise.debounce + 2 * self.sustain + self.minutes(MINUTE, self.sustain)
        self.act(merged, "merge", category=test.category)
        if self.dice.random() < 0.7:
            self.act(merged + self.minutes(MINUTE, 2 * self.sustain), "split", category=test.category)

    def found(self, at: datetime) -> None:
        """Ingestion finds something, and that it is over."""
        center, hole = self.dice.choice(self.plan.centers), self.older(at, self.dice.randrange(1, 3))
        kind = self.dice.choice(["schema_incompatible", "job_failing"])
        ends = at + self.minutes(MINUTE, 20 * HOUR)
        if any(planted.test == f"finding:{kind}" for planted in self.story.troubles[self.plan.name, f"finding:{kind}"]):
            return
        self.story.troubles[self.plan.name, f"finding:{kind}"].append(
            Trouble(self.plan.name, f"finding:{kind}", center, at, ends, "FAIL", hole)
        )
        self.act(at, "finding_raised", kind=kind, center=center, data=hole)
        self.act(ends, "finding_cleared", kind=kind, center=center, data=hole)

    def told(self, at: datetime) -> None:
        """Somebody reports what no test saw, or what one did."""
        category = self.any_test().category
        if self.dice.random() < 0.4:
            made = self.real(at, 4 * self.sustain)
            category = next(planned.category for planned in self.plan.tests if planned.key == made.test)
        when = at + self.minutes(MINUTE, 4 * self.sustain)
        center = self.dice.choice([None, *self.plan.centers])
        since = when - self.minutes(timedelta(), 10 * HOUR)
        data = self.older(at, self.dice.randrange(1, 3))
        self.act(when, "report", category=category, center=center, data=data, since=since)
        answered = when + self.minutes(HOUR, DAY)
        answer = self.dice.choice(["acknowledge_report", "acknowledge_report", "reject_report", "say_nothing"])
        self.act(answered, answer, category=category)
        if answer == "reject_report" and self.dice.random() < 0.5:
            self.act(answered + HOUR, "dispute_report", category=category)
            self.act(answered + 3 * HOUR, "acknowledge_report", category=category)
        if self.dice.random() < 0.8:
            self.act(answered + self.minutes(4 * HOUR, 2 * DAY), "fixed_report", category=category)

    def ask(self, at: datetime) -> None:
        """Somebody asks the gate, sometimes twice in one request."""
        start = at - self.dice.randrange(0, 10 * 24) * HOUR
        data = (start, start + self.dice.randrange(1, 80) * HOUR)
        center, consumer = self.dice.choice(self.plan.centers), self.dice.choice(["etl", "reports"])
        for later in (timedelta(), *([self.minutes(MINUTE, DAY)] if self.dice.random() < 0.3 else [])):
            request = f"{self.plan.name}-{at:%m%d%H%M}"
            self.act(at + later, "ask", center=center, data=data, consumer=consumer, request=request)

    # Small words

    def minutes(self, least: timedelta, most: timedelta) -> timedelta:
        return self.dice.randrange(least // MINUTE, max(most // MINUTE, least // MINUTE + 1)) * MINUTE

    def any_test(self) -> TestPlan:
        return self.dice.choice([planned for planned in self.plan.tests if planned is not FRESHNESS])

    def newest(self, at: datetime, count: int, test: TestPlan) -> tuple[Range, datetime]:
        """The newest partitions that are due by then, and when the last of them was; of the whole: everything, now."""
        if test.whole:
            return EVER, at
        end = self.plan.floor(at - self.plan.promise.due_after)
        start = end
        for _ in range(count):
            start = self.plan.before(start)
        return (start, end), end + self.plan.promise.due_after

    def older(self, at: datetime, ago: int) -> Range:
        if self.plan.grain == "none":
            return EVER
        begin = self.plan.floor(at - self.plan.promise.due_after)
        for _ in range(ago):
            begin = self.plan.before(begin)
        return (begin, self.plan.after(begin))

    def trouble(
        self, test: TestPlan, center: str, start: datetime, end: datetime, outcome: str, data: Range
    ) -> Trouble:
        made = Trouble(self.plan.name, test.key, center, start, end, outcome, data)
        self.story.troubles[self.plan.name, test.key].append(made)
        return made

    def flap(self, made: Trouble, period: timedelta) -> None:
        mine = self.story.troubles[made.dataset, made.test]
        mine.remove(made)
        mine.append(replace(made, period=period))

    def commit(self, at: datetime, center: str, touched: list[Range]) -> None:
        self.act(at, "commit", center=center, touched=touched)

    def act(self, at: datetime, what: str, **fields: Any) -> None:
        if at <= self.story.end:
            self.story.acts[at].append(Act(at, what, self.plan.name, fields))
