"""The verdict of a unit: what is believed now about one test on one copy and one data range.

The facts of a unit are few and are kept up one observation at a time; the verdict is a function of the facts and of `now`.
That gives what a replay of every observation would give, without keeping them (an observation is a result with the time
its data was read; L is the last PASS, f and e the first and last FAIL after it, S the sustain period in force at f).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

from lakehub.kernel.interval import later
from lakehub.kernel.outcome import Outcome, Verdict
from quality.domain.periods import is_bounded


class VerdictReason(StrEnum):
    """Why the verdict is what it is."""

    PASSING = "passing"
    IN_SUSTAIN = "in_sustain"
    SUSTAINED = "sustained"
    NOT_RERUN = "not_rerun"
    NEVER_PASSED = "never_passed"
    ERROR = "error"
    NO_DATA = "no_data"
    STALE = "stale"
    RETEST_OVERDUE = "retest_overdue"
    PERIOD_TOO_LONG = "period_too_long"
    FALSE_POSITIVE = "false_positive"
    ACCEPTED = "accepted"
    NOT_EXPECTED = "not_expected"


class Waiver(StrEnum):
    """Why a unit counts no more. A person decided about its failure: the alarm was wrong, or it is true and stays as it is.
    Or the calendar, since it was tested: nothing is produced in its range."""

    FALSE_POSITIVE = "false_positive"
    ACCEPTED = "accepted"
    NOT_EXPECTED = "not_expected"


MAX_UNREAD_COMMITS = 8
"""More are remembered as fewer: two of them as one that is as late as the later and due as early as the earlier."""


class UnreadCommit(NamedTuple):
    """A commit that touched the range, and from when on its retest is overdue."""

    committed_at: datetime
    retest_due_at: datetime


@dataclass(frozen=True)
class UnitFacts:
    """All that the past says about a unit. `sustain` is the period in force at `first_fail_at`."""

    last_pass_at: datetime | None = None
    first_fail_at: datetime | None = None
    last_fail_at: datetime | None = None
    sustain: timedelta = timedelta()
    latest_outcome: Outcome | None = None
    latest_at: datetime | None = None
    cadence: timedelta | None = None
    touched_at: datetime | None = None
    """The latest commit that touched the range and that no PASS has read yet."""
    retest_due_at: datetime | None = None
    """From here on the retest of such a commit is overdue."""
    unread_commits: tuple[UnreadCommit, ...] = ()
    """All such commits, the oldest first; empty: only the two times above are known."""
    waiver: Waiver | None = None
    waived_at: datetime | None = None

    @property
    def is_failing(self) -> bool:
        """A streak runs: a FAIL after the last PASS, waived or not."""
        return self.first_fail_at is not None

    @property
    def sustained_at(self) -> datetime | None:
        """f + S: a FAIL read at or after this makes the verdict FAIL."""
        return None if self.first_fail_at is None else later(self.first_fail_at, self.sustain)


@dataclass(frozen=True)
class Observation:
    """One result: its outcome, when its data was read, and the sustain period of the test version that ran."""

    outcome: Outcome
    read_at: datetime
    sustain: timedelta = timedelta()


@dataclass(frozen=True)
class Judgement:
    """A verdict, why, and the next instant at which time alone changes it (None: only an event can)."""

    verdict: Verdict
    reason: VerdictReason
    changes_at: datetime | None = None


# What happens to a unit


def observe(facts: UnitFacts, outcome: Outcome, *, read_at: datetime, sustain: timedelta) -> UnitFacts:
    """The facts after one more result. Results are ordered by the time their data was read, not by their arrival; of
    results read at one instant the worst counts.

    Exact unless `needs_replay` says that the facts do not remember enough.
    """
    if outcome is Outcome.SKIPPED or _is_beaten(facts, outcome, read_at):
        return facts
    facts = _with_latest(facts, outcome, read_at)
    if outcome is Outcome.PASS:
        return _after_pass(facts, read_at)
    if outcome is Outcome.FAIL:
        return _after_fail(facts, read_at, sustain)
    return facts


def needs_replay(facts: UnitFacts, outcome: Outcome, *, read_at: datetime) -> bool:
    """Is it a result that arrived so late that only the results themselves tell what to make of it?

    A PASS between known FAILs: which FAIL was the first after it? Something worse at the very instant of the last PASS:
    which PASS came before? A PASS before the latest result: was there something worse at its instant?
    """
    if outcome is Outcome.SKIPPED or facts.latest_at is None or read_at > facts.latest_at:
        return False
    if outcome is Outcome.PASS:
        return read_at < facts.latest_at
    return read_at == facts.last_pass_at


def replay(observations: Iterable[Observation], facts: UnitFacts | None = None) -> UnitFacts:
    """`facts` (a new unit, if not given) as all the observations make it, in the order in which their data was read.

    What the facts know from before the first of the observations stays.
    """
    ordered = sorted(observations, key=lambda observation: observation.read_at)
    state = UnitFacts() if facts is None else facts
    state = _forget_since(state, ordered[0].read_at) if ordered else state
    for read_at, together in groupby(ordered, key=lambda observation: observation.read_at):
        for observation in sorted(together, key=lambda observation: _RANKS.get(observation.outcome, 0)):
            state = observe(state, observation.outcome, read_at=read_at, sustain=observation.sustain)
    return state


_RANKS = {outcome: rank for rank, outcome in enumerate((Outcome.FAIL, Outcome.ERROR, Outcome.NO_DATA, Outcome.PASS))}
"""Which of several results of one instant counts: the first of these."""


def _is_beaten(facts: UnitFacts, outcome: Outcome, read_at: datetime) -> bool:
    """By a worse result of the same instant."""
    return (
        read_at == facts.latest_at
        and facts.latest_outcome is not None
        and _RANKS[facts.latest_outcome] < _RANKS[outcome]
    )


def _forget_since(facts: UnitFacts, since: datetime) -> UnitFacts:
    passed, failed = facts.last_pass_at, facts.first_fail_at
    failed = failed if failed is not None and failed < since else None
    return replace(
        facts,
        last_pass_at=passed if passed is not None and passed < since else None,
        first_fail_at=failed,
        last_fail_at=failed,
        sustain=timedelta() if failed is None else facts.sustain,
        latest_outcome=None,
        latest_at=None,
    )


def touch(facts: UnitFacts, *, committed_at: datetime, retest_due_at: datetime) -> UnitFacts:
    """A commit wrote into the range. Of commits that wait for a retest the earliest deadline counts."""
    if facts.last_pass_at is not None and committed_at <= facts.last_pass_at:
        return facts
    return _with_unread(facts, (*_unread_commits(facts), UnreadCommit(committed_at, retest_due_at)))


def retest_overdue_at(facts: UnitFacts, read_at: datetime) -> datetime | None:
    """When the retest of the commits that a reading at `read_at` lacks is overdue; None: there are none."""
    deadlines = (commit.retest_due_at for commit in _unread_commits(facts) if commit.committed_at > read_at)
    return min(deadlines, default=None)


def _unread_commits(facts: UnitFacts) -> tuple[UnreadCommit, ...]:
    if facts.unread_commits or facts.touched_at is None or facts.retest_due_at is None:
        return facts.unread_commits
    return (UnreadCommit(facts.touched_at, facts.retest_due_at),)


def _with_unread(facts: UnitFacts, commits: Iterable[UnreadCommit]) -> UnitFacts:
    unread = sorted(commits)
    while len(unread) > MAX_UNREAD_COMMITS:
        oldest, next_oldest = unread[:2]
        due_at = min(oldest.retest_due_at, next_oldest.retest_due_at)
        unread[:2] = [UnreadCommit(next_oldest.committed_at, due_at)]
    return replace(
        facts,
        touched_at=max((commit.committed_at for commit in unread), default=None),
        retest_due_at=min((commit.retest_due_at for commit in unread), default=None),
        unread_commits=tuple(unread),
    )


def waive(facts: UnitFacts, waiver: Waiver, *, at: datetime) -> UnitFacts:
    """A person resolved the failure by force: it counts no more until a PASS read later, or a new test version."""
    return replace(facts, waiver=waiver, waived_at=at)


def lift_waiver(facts: UnitFacts) -> UnitFacts:
    """The test got a new version: what was waived under the old one counts again."""
    return replace(facts, waiver=None, waived_at=None)


def begin_anew(facts: UnitFacts) -> UnitFacts:
    """What was not expected is expected after all: nothing is known of it, as before its first run."""
    return UnitFacts(cadence=facts.cadence)


def _with_latest(facts: UnitFacts, outcome: Outcome, read_at: datetime) -> UnitFacts:
    if facts.latest_at is not None and read_at < facts.latest_at:
        return facts
    return replace(facts, latest_outcome=outcome, latest_at=read_at)


def _after_pass(facts: UnitFacts, read_at: datetime) -> UnitFacts:
    if facts.last_pass_at is not None and read_at <= facts.last_pass_at:
        return facts
    facts = _streak_after_pass(replace(facts, last_pass_at=read_at), read_at)
    if facts.touched_at is not None:
        facts = _with_unread(facts, (commit for commit in _unread_commits(facts) if commit.committed_at > read_at))
    if facts.waived_at is not None and facts.waived_at < read_at:
        facts = lift_waiver(facts)
    return facts


def _streak_after_pass(facts: UnitFacts, passed_at: datetime) -> UnitFacts:
    """What is left of the failing streak: the FAILs read after the PASS."""
    if facts.first_fail_at is None or facts.last_fail_at is None or passed_at < facts.first_fail_at:
        return facts
    if passed_at < facts.last_fail_at:
        return replace(facts, first_fail_at=facts.last_fail_at)
    return replace(facts, first_fail_at=None, last_fail_at=None, sustain=timedelta())


def _after_fail(facts: UnitFacts, read_at: datetime, sustain: timedelta) -> UnitFacts:
    if facts.last_pass_at is not None and read_at < facts.last_pass_at:
        return facts
    if facts.first_fail_at is None or read_at < facts.first_fail_at:
        facts = replace(facts, first_fail_at=read_at, sustain=sustain)
    return replace(facts, last_fail_at=max(facts.last_fail_at or read_at, read_at))


# What that means now


def judge(facts: UnitFacts, *, now: datetime) -> Judgement:
    """The first rule that matches: waived, failing, unknown, passing."""
    return _waived(facts) or _failing(facts, now) or _unknown(facts, now) or _passing(facts)


def _waived(facts: UnitFacts) -> Judgement | None:
    if facts.waiver is None:
        return None
    if facts.waiver is Waiver.ACCEPTED:
        return Judgement(Verdict.WARN, VerdictReason.ACCEPTED)
    if facts.waiver is Waiver.NOT_EXPECTED:
        return Judgement(Verdict.PASS, VerdictReason.NOT_EXPECTED)
    return Judgement(Verdict.PASS, VerdictReason.FALSE_POSITIVE)


def _failing(facts: UnitFacts, now: datetime) -> Judgement | None:
    first, last = facts.first_fail_at, facts.last_fail_at
    if first is None or last is None:
        return None
    if not is_bounded(facts.sustain):
        return Judgement(Verdict.UNKNOWN, VerdictReason.PERIOD_TOO_LONG)
    if last - first >= facts.sustain:
        return Judgement(Verdict.FAIL, VerdictReason.SUSTAINED)
    unattended_at = later(first, 2 * facts.sustain)
    if now >= unattended_at:
        return Judgement(Verdict.FAIL, VerdictReason.NOT_RERUN)
    return Judgement(Verdict.WARN, VerdictReason.IN_SUSTAIN, changes_at=unattended_at)


def _unknown(facts: UnitFacts, now: datetime) -> Judgement | None:
    if not is_bounded(facts.cadence):
        return Judgement(Verdict.UNKNOWN, VerdictReason.PERIOD_TOO_LONG)
    if facts.latest_outcome is Outcome.ERROR:
        return Judgement(Verdict.UNKNOWN, VerdictReason.ERROR)
    if facts.latest_outcome is Outcome.NO_DATA:
        return Judgement(Verdict.UNKNOWN, VerdictReason.NO_DATA)
    if facts.last_pass_at is None:
        return Judgement(Verdict.UNKNOWN, VerdictReason.NEVER_PASSED)
    if facts.retest_due_at is not None and now >= facts.retest_due_at:
        return Judgement(Verdict.UNKNOWN, VerdictReason.RETEST_OVERDUE)
    stale_at = _stale_at(facts)
    if stale_at is not None and now >= stale_at:
        return Judgement(Verdict.UNKNOWN, VerdictReason.STALE)
    return None


def _passing(facts: UnitFacts) -> Judgement:
    doubts = [at for at in (facts.retest_due_at, _stale_at(facts)) if at is not None]
    return Judgement(Verdict.PASS, VerdictReason.PASSING, changes_at=min(doubts, default=None))


def _stale_at(facts: UnitFacts) -> datetime | None:
    """Two cadences after the last PASS, for a test that runs on a cadence."""
    if facts.cadence is None or facts.last_pass_at is None:
        return None
    return later(facts.last_pass_at, 2 * facts.cadence)
