"""What the gate makes of a unit's row is what the domain makes of its facts, by whichever way it comes to it."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from incidents.gate import load_state
from lakehub.kernel.outcome import Outcome
from quality.domain.verdicts.unit_verdict import UnitFacts, Waiver, judge
from tests.factories import DAY, HOUR, NOW, day

OVER = day("2026-11-16")
instants = st.none() | st.sampled_from([NOW + number * HOUR for number in (-48, -5, -1, 0, 3)])


@given(
    passed=instants,
    first=instants,
    last=instants,
    touched=instants,
    retest_due=instants,
    sustain=st.sampled_from([None, HOUR, 2 * DAY]),
    cadence=st.sampled_from([None, timedelta(), HOUR, DAY]),
    outcome=st.sampled_from(["", *Outcome]),
    waiver=st.sampled_from(["", *Waiver]),
)
def test_a_row_is_judged_as_its_facts_are(
    passed: datetime | None,
    first: datetime | None,
    last: datetime | None,
    touched: datetime | None,
    retest_due: datetime | None,
    sustain: timedelta | None,
    cadence: timedelta | None,
    outcome: str,
    waiver: str,
) -> None:
    cells = [OVER.start, OVER.end, None, NOW, passed, first, last, sustain, str(outcome), passed, touched, retest_due]
    state = load_state._judge_row([*cells, str(waiver), None, 7, NOW], cadence, NOW).state
    facts = UnitFacts(
        passed,
        first,
        last,
        sustain or timedelta(),
        Outcome(outcome) if outcome else None,
        passed,
        cadence,
        touched,
        retest_due,
        waiver=Waiver(waiver) if waiver else None,
    )
    judgement = judge(facts, now=NOW)
    assert (state.data, state.verdict, state.incident, state.eta) == (OVER, judgement.verdict, 7, NOW)
    assert state.reason == ("changed" if touched and judgement.reason == "passing" else judgement.reason)
    assert (state.is_failing, state.has_verdict) == (first is not None and not waiver, bool(passed or first))
    assert state.changed_at == touched
