"""The book, first part: what is believed of a unit, from all that was ever seen of it, and when it is run again.

Written from docs/concepts.md and the rules of verdicts alone: it keeps every observation and looks through all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from tests.web.incidents.quarter.scenario import MINUTE, DatasetPlan, Key, TestPlan

OVERDUE = 10 * MINUTE
"""A retest that has not passed so long after it was due makes what is believed UNKNOWN."""


class Seen(NamedTuple):
    outcome: str
    at: datetime
    sustain: timedelta


@dataclass
class ModelUnit:
    key: Key
    plan: DatasetPlan
    test: TestPlan
    seen: list[Seen] = field(default_factory=list)
    touched: list[datetime] = field(default_factory=list)
    waiver: str = ""
    waived_at: datetime | None = None
    boundary: datetime | None = None
    """Freshness: up to where the copy was complete when that was seen last."""
    due: datetime | None = None
    by_hand: bool = False
    """A person asked for the run that is due."""
    reruns: int = 0
    """How many followed on the present trouble."""
    fails: bool = False
    """What was believed at the last look: FAIL or not."""

    has_streak: bool = False

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def sustain(self) -> timedelta:
        return timedelta() if self.test.category == "ingestion" else self.plan.promise.sustain

    # What is believed

    def last_pass(self) -> datetime | None:
        return max((observation.at for observation in self.seen if observation.outcome == "PASS"), default=None)

    def streak(self) -> list[Seen]:
        """The FAILs after the last PASS."""
        passed = self.last_pass()
        return [
            observation
            for observation in self.seen
            if observation.outcome == "FAIL" and (passed is None or observation.at > passed)
        ]

    def failing(self) -> bool:
        """Whether there are any; looked up when something is seen, not every minute."""
        return self.has_streak

    def latest(self) -> Seen | None:
        return self.seen[-1] if self.seen else None

    def verdict(self, now: datetime) -> str:
        if self.waiver:
            return "warn" if self.waiver == "accepted" else "pass"
        return self.verdict_unwaived(now)

    def verdict_unwaived(self, now: datetime) -> str:
        if fails := self.streak():
            first, last, sustain = fails[0].at, fails[-1].at, fails[0].sustain
            return "fail" if last - first >= sustain or now - first >= 2 * sustain else "warn"
        passed, latest = self.last_pass(), self.latest()
        if passed is None or latest is None or latest.outcome in ("ERROR", "NO_DATA"):
            return "unknown"
        if self.test.whole and now >= passed + 2 * self.plan.promise.cadence:
            return "unknown"
        overdue = [at for at in self.touched if at > passed and now >= at + self.plan.promise.debounce + OVERDUE]
        return "unknown" if overdue else "pass"

    # What happens to it

    def observe(self, outcome: str, now: datetime) -> None:
        if outcome == "SKIPPED":
            return
        self.seen.append(Seen(outcome, now, self.sustain))
        self.has_streak = bool(self.streak())
        if outcome == "PASS" and self.waived_at is not None and now > self.waived_at:
            self.lift()

    def waive(self, how: str, now: datetime) -> None:
        self.waiver, self.waived_at = how, now

    def lift(self) -> None:
        self.waiver, self.waived_at = "", None

    def touch(self, now: datetime) -> None:
        """A commit wrote into it. What was not run yet reads it anyway, what runs on a cadence soon enough."""
        if self.test.whole or not self.seen or self.test.category == "ingestion":
            return
        self.touched.append(now)
        retest = now + self.plan.promise.debounce
        if self.due is None or self.due > retest:
            self.due, self.by_hand = retest, False

    def ask(self, now: datetime, *, by_hand: bool) -> None:
        """Somebody, or the end of late data, wants it run now."""
        is_due = self.due is not None and self.due <= now
        self.due, self.by_hand = now, by_hand or (is_due and self.by_hand)

    def schedule(self, now: datetime, jitter: float) -> None:
        """After it was run: min(cap, base * 2^k) apart with jitter, plus one at f + S, until the streak ends."""
        promise, fails, latest = self.plan.promise, self.streak(), self.latest()
        regular = now + promise.cadence if self.test.whole else None
        trouble = fails or (latest is not None and latest.outcome in ("ERROR", "NO_DATA"))
        self.by_hand = False
        if self.waiver or not trouble:
            self.due, self.reruns = regular, 0
            return
        again = now + min(promise.cap, promise.base * 2 ** min(self.reruns, 20)) * (1 + 0.1 * jitter)
        if fails and latest is not None:
            sustained = fails[0].at + fails[0].sustain
            if latest.at < sustained < again:
                again = sustained
        self.due, self.reruns = again if regular is None else min(again, regular), self.reruns + 1
