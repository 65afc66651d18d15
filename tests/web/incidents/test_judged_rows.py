"""What the gate makes of a unit's row is what the domain makes of its facts, by whichever way it comes to it."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

from incidents.gate import load_state
from lakehub.kernel.outcome import Outcome
from quality.domain.verdicts.unit_verdict import UnitFacts, Waiver, judge
from tests.factories import DAY, HOUR, NOW, day

OVER = day("2026-11-16")
LONG_AGO, AGO, LATER = NOW - 2 * DAY, NOW - HOUR, NOW + 3 * HOUR
EVERY_ROW = product(
    (None, LONG_AGO, AGO),
    (None, LONG_AGO),
    (None, AGO),
    (None, AGO),
    (None, AGO, LATER),
    (None, HOUR, 9 * DAY),
    (None, timedelta(), HOUR, DAY),
    (None, *Outcome),
    (None, *Waiver),
)


def test_a_row_is_judged_as_its_facts_are() -> None:
    for passed, first, last, touched, retest_due, sustain, cadence, outcome, waiver in EVERY_ROW:
        cells = [OVER.start, OVER.end, None, NOW, passed, first, last, sustain, outcome or "", passed]
        row = [*cells, touched, retest_due, waiver or "", None, 7, NOW]
        state = load_state._judge_row(row, cadence, NOW).state
        judgement = judge(
            UnitFacts(
                passed,
                first,
                last,
                sustain or timedelta(),
                outcome,
                passed,
                cadence,
                touched,
                retest_due,
                waiver=waiver,
            ),
            now=NOW,
        )
        is_changed = touched is not None and judgement.reason == "passing"
        assert (state.data, state.verdict, state.incident, state.eta) == (OVER, judgement.verdict, 7, NOW), row
        assert state.reason == ("changed" if is_changed else judgement.reason), row
        assert (state.is_failing, state.has_verdict) == (first is not None and not waiver, bool(passed or first)), row
        assert state.changed_at == touched, row
