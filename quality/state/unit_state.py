"""Between a unit's row and the facts that its verdict is judged from; each change of the verdict leaves a Flip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from lakehub.db import bulk_update
from lakehub.kernel.outcome import Outcome, Verdict
from quality.domain.verdicts.unit_verdict import (
    Judgement,
    Observation,
    UnitFacts,
    UnreadCommit,
    Waiver,
    judge,
    needs_replay,
    observe,
    replay,
)
from quality.models import Flip, Result, Unit

FACT_FIELDS = (
    "last_pass_at",
    "first_fail_at",
    "last_fail_at",
    "sustain",
    "latest_outcome",
    "latest_at",
    "touched_at",
    "retest_due_at",
    "unread_commits",
    "waiver",
    "waived_at",
)
MAX_REPLAYED_RESULTS = 10_000
VERDICT_FIELDS = ("verdict", "reason", "verdict_at", "reevaluate_at")


def unit_facts(unit: Unit) -> UnitFacts:
    """The facts of a row. Reads the cadence from the test's version: select it along."""
    version = unit.test.version
    return UnitFacts(
        last_pass_at=unit.last_pass_at,
        first_fail_at=unit.first_fail_at,
        last_fail_at=unit.last_fail_at,
        sustain=unit.sustain or timedelta(),
        latest_outcome=Outcome(unit.latest_outcome) if unit.latest_outcome else None,
        latest_at=unit.latest_at,
        cadence=version.cadence if version else None,
        touched_at=unit.touched_at,
        retest_due_at=unit.retest_due_at,
        unread_commits=tuple(
            UnreadCommit(datetime.fromisoformat(at), datetime.fromisoformat(due)) for at, due in unit.unread_commits
        ),
        waiver=Waiver(unit.waiver) if unit.waiver else None,
        waived_at=unit.waived_at,
    )


def facts_with_result(unit: Unit, result: Result, *, sustain: timedelta) -> UnitFacts:
    """The facts after a result that is stored already and may have arrived late: then from the stored ones, the latest of them."""
    facts, outcome = unit_facts(unit), Outcome(result.outcome)
    if not needs_replay(facts, outcome, read_at=result.read_at):
        return observe(facts, outcome, read_at=result.read_at, sustain=sustain)
    rows = Result.objects.filter(unit=unit).order_by("-read_at").values_list("outcome", "read_at", "version__sustain")
    return replay((Observation(Outcome(what), at, period) for what, at, period in rows[:MAX_REPLAYED_RESULTS]), facts)


def current_judgement(unit: Unit, *, now: datetime) -> Judgement:
    """What is believed of the unit at `now`, whatever its row said last."""
    return judge(unit_facts(unit), now=now)


def apply_facts(unit: Unit, facts: UnitFacts, *, now: datetime, result: Result | None = None) -> Flip | None:
    """Puts the facts and what they mean now into the row; the Flip where the verdict changed. `save_units` saves both."""
    for name in FACT_FIELDS:
        value = getattr(facts, name)
        setattr(unit, name, "" if value is None and name in ("latest_outcome", "waiver") else value)
    unit.unread_commits = [[at.isoformat(), due.isoformat()] for at, due in facts.unread_commits]
    judged = judge(facts, now=now)
    was, unit.verdict, unit.reason, unit.reevaluate_at = (
        Verdict(unit.verdict),
        judged.verdict,
        judged.reason,
        judged.changes_at,
    )
    if judged.verdict is was:
        return None
    unit.verdict_at = now
    return Flip(
        unit=unit,
        result=result,
        was=was,
        becomes=judged.verdict,
        reason=judged.reason,
        at=now,
        failing_since=facts.first_fail_at if judged.verdict is Verdict.FAIL else None,
        affected_from=unit.affected_from,
    )


def save_units(units: Sequence[Unit], flips: Iterable[Flip | None], *, also: Sequence[str] = ()) -> None:
    """Saves what `apply_facts` made of the units, and the fields `also`: one update and one insert, however many they are.

    Call it inside the transaction that locked the rows.
    """
    bulk_update.bulk_update(units, (*FACT_FIELDS, *VERDICT_FIELDS, *also))
    Flip.objects.bulk_create(flip for flip in flips if flip is not None)
