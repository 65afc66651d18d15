from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lakehub.kernel.backoff import Backoff
from lakehub.kernel.outcome import Outcome, Verdict
from quality.domain.scheduling.rerun_backoff import NoRerun, RerunAt, RerunReason, next_rerun
from quality.domain.verdicts.unit_verdict import UnitFacts, Waiver, judge, observe, waive

START = datetime(2026, 11, 16, tzinfo=UTC)
BACKOFF = Backoff(base=timedelta(minutes=5), cap=timedelta(hours=1))


def failed_at(instant: datetime, sustain: timedelta) -> UnitFacts:
    return observe(UnitFacts(), Outcome.FAIL, read_at=instant, sustain=sustain)


def run_until(days: timedelta, sustain: timedelta, jitter: float) -> list[RerunAt]:
    """A unit that fails every time it is run, from its first failure on."""
    facts, now, reruns = failed_at(START, sustain), START, 0
    decisions: list[RerunAt] = []
    while now < START + days:
        decision = next_rerun(facts, reruns=reruns, backoff=BACKOFF, jitter=jitter, now=now)
        assert isinstance(decision, RerunAt)
        decisions.append(decision)
        now, reruns = decision.at, reruns + (decision.reason is RerunReason.BACKOFF)
        facts = observe(facts, Outcome.FAIL, read_at=now, sustain=sustain)
    return decisions


def test_reruns_double_up_to_the_cap() -> None:
    times = [decision.at for decision in run_until(timedelta(hours=6), sustain=timedelta(), jitter=0.0)]
    gaps = [
        int((later - earlier).total_seconds() // 60) for earlier, later in zip([START, *times], times, strict=False)
    ]
    assert gaps[:6] == [5, 10, 20, 40, 60, 60]


def test_one_rerun_falls_on_the_end_of_the_sustain_period() -> None:
    decisions = run_until(timedelta(hours=6), sustain=timedelta(hours=2), jitter=0.0)
    assert [d.at for d in decisions if d.reason is RerunReason.END_OF_SUSTAIN] == [START + timedelta(hours=2)]


@given(sustain=st.integers(0, 600), jitter=st.floats(0, 0.999))
def test_a_unit_that_keeps_failing_is_settled_at_the_end_of_its_sustain_period(sustain: int, jitter: float) -> None:
    period = timedelta(minutes=sustain)
    at_end = [d for d in run_until(timedelta(hours=12), period, jitter) if d.at >= START + period]
    assert period == timedelta() or at_end[0].at == START + period
    facts = observe(failed_at(START, period), Outcome.FAIL, read_at=at_end[0].at, sustain=period)
    assert judge(facts, now=at_end[0].at).verdict is Verdict.FAIL


@given(sustain=st.integers(0, 600), jitter=st.floats(0, 0.999))
def test_reruns_go_forward_in_time(sustain: int, jitter: float) -> None:
    times = [d.at for d in run_until(timedelta(hours=12), timedelta(minutes=sustain), jitter)]
    assert times == sorted(set(times))


def test_the_rerun_at_the_end_is_not_repeated_when_it_could_not_run() -> None:
    sustain = timedelta(minutes=10)
    facts = observe(failed_at(START, sustain), Outcome.ERROR, read_at=START + sustain, sustain=sustain)
    decision = next_rerun(facts, reruns=1, backoff=BACKOFF, jitter=0.0, now=START + sustain)
    assert decision == RerunAt(START + timedelta(minutes=20), RerunReason.BACKOFF)


def test_a_test_that_could_not_run_is_tried_again_in_the_same_rhythm() -> None:
    facts = observe(UnitFacts(), Outcome.ERROR, read_at=START, sustain=timedelta(hours=2))
    decision = next_rerun(facts, reruns=1, backoff=BACKOFF, jitter=0.0, now=START)
    assert decision == RerunAt(START + timedelta(minutes=10), RerunReason.COULD_NOT_RUN)


def test_reruns_end_with_the_streak() -> None:
    facts = observe(
        failed_at(START, timedelta()), Outcome.PASS, read_at=START + timedelta(minutes=5), sustain=timedelta()
    )
    assert next_rerun(facts, reruns=3, backoff=BACKOFF, jitter=0.5, now=START) == NoRerun("not failing")


def test_a_waived_unit_is_not_rerun() -> None:
    facts = waive(failed_at(START, timedelta()), Waiver.ACCEPTED, at=START)
    assert next_rerun(facts, reruns=0, backoff=BACKOFF, jitter=0.5, now=START) == NoRerun("waived as accepted")
