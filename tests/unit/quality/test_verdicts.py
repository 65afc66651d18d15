"""Kept-up facts against the rules read aloud over every observation ever made, at every minute."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from lakehub.kernel.outcome import Outcome, Verdict
from quality.domain.verdicts.unit_verdict import (
    MAX_UNREAD_COMMITS,
    Judgement,
    Observation,
    UnitFacts,
    VerdictReason,
    Waiver,
    judge,
    lift_waiver,
    needs_replay,
    observe,
    replay,
    touch,
    waive,
)

START = datetime(2026, 11, 16, tzinfo=UTC)
HORIZON = 48
MINUTES = range(HORIZON)


def minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


def minutes(number: int) -> timedelta:
    return timedelta(minutes=number)


@dataclass(frozen=True)
class History:
    """Everything that ever happened to a unit; two things at one minute happen in the order of `facts_until`."""

    observations: dict[int, tuple[Outcome, int]] = field(default_factory=dict)
    """minute -> (outcome, minutes of sustain in force)"""
    commits: dict[int, int] = field(default_factory=dict)
    """minute -> minutes until its retest is overdue"""
    waivers: dict[int, Waiver] = field(default_factory=dict)
    new_versions: frozenset[int] = frozenset()
    cadence: int | None = None

    def facts_until(self, now: int) -> UnitFacts:
        facts = UnitFacts(cadence=None if self.cadence is None else minutes(self.cadence))
        for at in range(now + 1):
            if at in self.commits:
                facts = touch(facts, committed_at=minute(at), retest_due_at=minute(at + self.commits[at]))
            if at in self.observations:
                outcome, sustain = self.observations[at]
                facts = observe(facts, outcome, read_at=minute(at), sustain=minutes(sustain))
            if at in self.waivers:
                facts = waive(facts, self.waivers[at], at=minute(at))
            if at in self.new_versions:
                facts = lift_waiver(facts)
        return facts


def verdict_by_the_book(history: History, now: int) -> Verdict:
    """Slow and obvious: the rules, in their own words and order."""
    seen = {at: what for at, what in history.observations.items() if at <= now and what[0] is not Outcome.SKIPPED}
    passes = [at for at, (outcome, _) in seen.items() if outcome is Outcome.PASS]
    last_pass = max(passes, default=-1)
    for at in sorted(history.waivers, reverse=True):
        if at <= now:
            lifted = any(at < passed for passed in passes) or any(at <= made <= now for made in history.new_versions)
            if not lifted:
                return Verdict.WARN if history.waivers[at] is Waiver.ACCEPTED else Verdict.PASS
            break
    fails = [at for at, (outcome, _) in seen.items() if outcome is Outcome.FAIL and at > last_pass]
    if fails:
        first, last = min(fails), max(fails)
        sustain = seen[first][1]
        return Verdict.FAIL if last - first >= sustain or now - first >= 2 * sustain else Verdict.WARN
    if not passes:
        return Verdict.UNKNOWN
    if seen[max(seen)][0] in (Outcome.ERROR, Outcome.NO_DATA):
        return Verdict.UNKNOWN
    if history.cadence is not None and now - last_pass >= 2 * history.cadence:
        return Verdict.UNKNOWN
    if any(last_pass < at <= now and now >= at + due for at, due in history.commits.items()):
        return Verdict.UNKNOWN
    return Verdict.PASS


minute_numbers = st.integers(0, HORIZON - 1)
histories = st.builds(
    History,
    observations=st.dictionaries(
        minute_numbers,
        st.tuples(
            st.sampled_from([Outcome.PASS, Outcome.PASS, Outcome.FAIL, Outcome.FAIL, *Outcome]), st.integers(0, 9)
        ),
        max_size=12,
    ),
    commits=st.dictionaries(minute_numbers, st.integers(0, 9), max_size=4),
    waivers=st.dictionaries(minute_numbers, st.sampled_from(Waiver), max_size=2),
    new_versions=st.frozensets(minute_numbers, max_size=2),
    cadence=st.none() | st.integers(1, 15),
)


@given(histories)
def test_the_facts_tell_what_the_whole_history_tells(history: History) -> None:
    for now in MINUTES:
        assert judge(history.facts_until(now), now=minute(now)).verdict is verdict_by_the_book(history, now), now


@given(histories, minute_numbers)
def test_it_changes_at_exactly_when_time_alone_changes_it(history: History, now: int) -> None:
    facts = history.facts_until(now)
    before = judge(facts, now=minute(now))
    changed = next(
        (at for at in range(now, 2 * HORIZON) if judge(facts, now=minute(at)).verdict is not before.verdict), None
    )
    assert before.changes_at == (None if changed is None else minute(changed))


class Arrival(NamedTuple):
    """A result, the minute at which its data was read, and how much later it arrives."""

    outcome: Outcome
    read_at: int
    later: int

    @property
    def sustain(self) -> int:
        return self.read_at % 7

    @property
    def observation(self) -> Observation:
        return Observation(self.outcome, minute(self.read_at), minutes(self.sustain))


arrivals = st.lists(st.builds(Arrival, st.sampled_from(Outcome), st.integers(0, 20), st.integers(0, 15)), max_size=12)
commit_times = st.dictionaries(st.integers(0, 25), st.integers(0, 9), max_size=5)


@given(arrivals, commit_times)
def test_late_results_count_by_the_time_their_data_was_read_and_the_worst_of_one_instant(
    results: list[Arrival], commits: dict[int, int]
) -> None:
    """Whatever arrives when: also the commits that came between a reading and its arrival."""
    facts, stored = UnitFacts(), list[Observation]()
    for now in range(40):
        if now in commits:
            facts = touch(facts, committed_at=minute(now), retest_due_at=minute(now + commits[now]))
        for result in (each for each in results if each.read_at + each.later == now):
            stored.append(result.observation)
            if needs_replay(facts, result.outcome, read_at=minute(result.read_at)):
                facts = replay(stored, facts)
            else:
                facts = observe(facts, result.outcome, read_at=minute(result.read_at), sustain=minutes(result.sustain))
        history = History(observations=_worst_by_minute(results, now), commits=commits)
        assert judge(facts, now=minute(now)).verdict is verdict_by_the_book(history, now), now


def _worst_by_minute(results: list[Arrival], now: int) -> dict[int, tuple[Outcome, int]]:
    order = [Outcome.FAIL, Outcome.ERROR, Outcome.NO_DATA, Outcome.PASS]
    there = [each for each in results if each.read_at + each.later <= now and each.outcome in order]
    by_severity = sorted(there, key=lambda each: order.index(each.outcome), reverse=True)
    return {each.read_at: (each.outcome, each.sustain) for each in by_severity}


def seen(*outcomes: tuple[int, Outcome], sustain: int = 10) -> UnitFacts:
    return replay(Observation(outcome, minute(at), minutes(sustain)) for at, outcome in outcomes)


def verdict_of(facts: UnitFacts, at: int) -> tuple[Verdict, VerdictReason]:
    judged = judge(facts, now=minute(at))
    return judged.verdict, judged.reason


def test_a_unit_that_never_ran_is_unknown() -> None:
    assert judge(UnitFacts(), now=START) == Judgement(Verdict.UNKNOWN, VerdictReason.NEVER_PASSED)


def test_a_failure_is_a_warning_until_it_was_seen_for_the_sustain_period() -> None:
    assert verdict_of(seen((0, Outcome.PASS), (5, Outcome.FAIL)), 14) == (Verdict.WARN, VerdictReason.IN_SUSTAIN)
    assert verdict_of(seen((5, Outcome.FAIL), (14, Outcome.FAIL)), 14) == (Verdict.WARN, VerdictReason.IN_SUSTAIN)
    assert verdict_of(seen((5, Outcome.FAIL), (15, Outcome.FAIL)), 15) == (Verdict.FAIL, VerdictReason.SUSTAINED)


def test_a_failure_that_nothing_reran_fails_after_two_sustain_periods() -> None:
    facts = seen((5, Outcome.FAIL))
    assert judge(facts, now=minute(24)) == Judgement(Verdict.WARN, VerdictReason.IN_SUSTAIN, changes_at=minute(25))
    assert verdict_of(facts, 25) == (Verdict.FAIL, VerdictReason.NOT_RERUN)


def test_a_sustain_period_of_zero_fails_at_once() -> None:
    assert verdict_of(seen((5, Outcome.FAIL), sustain=0), 5) == (Verdict.FAIL, VerdictReason.SUSTAINED)


def test_the_sustain_period_of_the_first_failure_stays_in_force() -> None:
    facts = observe(seen((5, Outcome.FAIL), sustain=0), Outcome.FAIL, read_at=minute(6), sustain=minutes(600))
    assert verdict_of(facts, 6) == (Verdict.FAIL, VerdictReason.SUSTAINED)


def test_an_error_never_ends_a_failing_streak() -> None:
    facts = seen((5, Outcome.FAIL), (15, Outcome.FAIL), (20, Outcome.ERROR), (21, Outcome.NO_DATA))
    assert verdict_of(facts, 21) == (Verdict.FAIL, VerdictReason.SUSTAINED)


def test_a_skipped_run_changes_nothing() -> None:
    facts = seen((5, Outcome.ERROR))
    assert observe(facts, Outcome.SKIPPED, read_at=minute(9), sustain=minutes(1)) == facts


def test_a_test_that_could_not_run_is_unknown_and_says_why() -> None:
    assert verdict_of(seen((0, Outcome.PASS), (5, Outcome.ERROR)), 5) == (Verdict.UNKNOWN, VerdictReason.ERROR)
    assert verdict_of(seen((0, Outcome.PASS), (5, Outcome.NO_DATA)), 5) == (Verdict.UNKNOWN, VerdictReason.NO_DATA)


def test_a_late_commit_makes_a_pass_doubtful_once_its_retest_is_overdue() -> None:
    facts = touch(seen((0, Outcome.PASS)), committed_at=minute(5), retest_due_at=minute(9))
    assert judge(facts, now=minute(8)) == Judgement(Verdict.PASS, VerdictReason.PASSING, changes_at=minute(9))
    assert verdict_of(facts, 9) == (Verdict.UNKNOWN, VerdictReason.RETEST_OVERDUE)
    retested = observe(facts, Outcome.PASS, read_at=minute(9), sustain=minutes(10))
    assert verdict_of(retested, 9) == (Verdict.PASS, VerdictReason.PASSING)


def test_a_pass_that_read_the_data_before_the_commit_does_not_settle_the_commit() -> None:
    facts = touch(seen((0, Outcome.PASS)), committed_at=minute(5), retest_due_at=minute(9))
    facts = observe(facts, Outcome.PASS, read_at=minute(4), sustain=minutes(10))
    assert verdict_of(facts, 9) == (Verdict.UNKNOWN, VerdictReason.RETEST_OVERDUE)


def test_a_waiver_ends_with_a_pass_that_was_read_after_it() -> None:
    waived = waive(seen((5, Outcome.FAIL), (15, Outcome.FAIL)), Waiver.FALSE_POSITIVE, at=minute(20))
    assert verdict_of(waived, 90) == (Verdict.PASS, VerdictReason.FALSE_POSITIVE)
    passed = observe(waived, Outcome.PASS, read_at=minute(21), sustain=minutes(10))
    failed = observe(passed, Outcome.FAIL, read_at=minute(22), sustain=minutes(0))
    assert verdict_of(failed, 22) == (Verdict.FAIL, VerdictReason.SUSTAINED)


def test_a_pass_read_at_the_moment_of_the_waiver_does_not_end_it() -> None:
    waived = waive(seen((5, Outcome.FAIL)), Waiver.ACCEPTED, at=minute(20))
    assert observe(waived, Outcome.PASS, read_at=minute(20), sustain=minutes(10)).waiver is Waiver.ACCEPTED


def test_the_nearest_doubt_says_when_to_look_again() -> None:
    facts = touch(replace(seen((0, Outcome.PASS)), cadence=minutes(4)), committed_at=minute(1), retest_due_at=minute(9))
    assert judge(facts, now=minute(1)).changes_at == minute(8)


def test_of_one_instant_the_worst_counts() -> None:
    for first, second in permutations((Outcome.PASS, Outcome.FAIL, Outcome.ERROR), 2):
        facts = seen((1, Outcome.PASS), (5, first), (5, second), sustain=0)
        assert facts.last_pass_at == minute(1)
        worst = Outcome.FAIL if Outcome.FAIL in (first, second) else Outcome.ERROR
        assert facts.latest_outcome is worst


def test_a_pass_that_arrives_late_ends_only_what_was_read_before_it() -> None:
    fails = [Observation(Outcome.FAIL, minute(at), minutes(10)) for at in (5, 12, 15)]
    late = Observation(Outcome.PASS, minute(10))
    known = replay(fails)
    assert needs_replay(known, Outcome.PASS, read_at=minute(10))
    assert (replay([*fails, late], known).first_fail_at, replay(fails[:1]).first_fail_at) == (minute(12), minute(5))


def test_of_commits_after_a_reading_only_those_not_yet_read_make_a_retest_overdue() -> None:
    """One at 2 that was read at 3, one at 4 that was not: what counts is the deadline of the second."""
    facts = touch(seen((0, Outcome.PASS)), committed_at=minute(2), retest_due_at=minute(12))
    facts = touch(facts, committed_at=minute(4), retest_due_at=minute(14))
    facts = observe(facts, Outcome.PASS, read_at=minute(3), sustain=minutes(10))
    assert verdict_of(facts, 13) == (Verdict.PASS, VerdictReason.PASSING)
    assert verdict_of(facts, 14) == (Verdict.UNKNOWN, VerdictReason.RETEST_OVERDUE)


def test_many_commits_without_a_retest_are_remembered_as_few() -> None:
    facts = seen((0, Outcome.PASS))
    for number in range(1, 40):
        facts = touch(facts, committed_at=minute(number), retest_due_at=minute(number + 50))
    assert len(facts.unread_commits) == MAX_UNREAD_COMMITS
    assert (facts.touched_at, facts.retest_due_at) == (minute(39), minute(51))


def test_no_pass_for_two_cadences_is_stale_at_that_very_instant() -> None:
    facts = replace(seen((0, Outcome.PASS)), cadence=minutes(4))
    assert [verdict_of(facts, at)[1] for at in (7, 8)] == [VerdictReason.PASSING, VerdictReason.STALE]


def test_an_accepted_defect_stays_a_warning_whatever_fails_next() -> None:
    waived = waive(seen((5, Outcome.FAIL)), Waiver.ACCEPTED, at=minute(20))
    failed = observe(waived, Outcome.FAIL, read_at=minute(30), sustain=minutes(0))
    assert verdict_of(failed, 30) == (Verdict.WARN, VerdictReason.ACCEPTED)
