"""Applies one evaluation to its unit: the result row, the new facts and verdict, and when the unit runs next."""

from __future__ import annotations

import random
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from lakehub.kernel.backoff import Backoff
from lakehub.kernel.outcome import Outcome
from quality.domain.evaluation.evaluate import Evaluation
from quality.domain.measurement_codec import storable_json
from quality.domain.verdicts.rerun_policy import RerunAt, next_rerun
from quality.domain.verdicts.unit_verdict import UnitFacts, observe
from quality.execution.evaluate import Execution
from quality.measuring.measure import CacheUse
from quality.models import Flip, Lane, Result, Unit
from quality.planning.retests import OVERDUE_AFTER
from quality.state.unit_state import apply_facts, unit_facts


def result_detail(evaluation: Evaluation, reused: CacheUse | None) -> dict[str, Any]:
    """Only what there is."""
    exchanged = evaluation.two_sided_answer or {}
    detail = {
        "formula": evaluation.formula,
        "observed": evaluation.observed_text,
        "behind": evaluation.behind,
        "cause": evaluation.cause,
        "facts": evaluation.facts,
        "complete_until": evaluation.complete_until.isoformat() if evaluation.complete_until else None,
        "groups": asdict(evaluation.groups) if evaluation.groups else None,
        "missing": exchanged.get("missing"),
        "bloom": exchanged.get("report"),
        "reused_from": _cache_use(reused) if reused else None,
    }
    return {name: storable_json(value) for name, value in detail.items() if value}


def _cache_use(reused: CacheUse) -> dict[str, Any]:
    return {
        "read_at": reused.read_at.isoformat(),
        "instant": reused.instant,
        "measures": reused.measures,
        "of": reused.total,
    }


_MIN_STEP = timedelta(microseconds=1)


def _next_read_at(row: Unit, now: datetime) -> datetime:
    """Runs of a unit follow each other, whatever the clocks of their workers say."""
    return now if row.latest_at is None or row.latest_at < now else row.latest_at + _MIN_STEP


def new_result(row: Unit, run: Execution, *, now: datetime, took: timedelta) -> Result:
    unit, evaluation = run.unit, run.evaluation
    read_at = _next_read_at(row, now)
    return Result(
        unit=unit,
        version=unit.test.version,
        outcome=evaluation.outcome,
        observed=_observed_number(evaluation),
        threshold=evaluation.threshold,
        detail=result_detail(evaluation, run.cache_use),
        trigger=_trigger(unit),
        read_at=read_at,
        instant=run.instant,
        started_at=read_at,
        ended_at=read_at + took,
    )


def _trigger(unit: Unit) -> str:
    if unit.lane == Lane.REQUESTED:
        return "manual"
    if unit.lane == Lane.LATE:
        return "late_data" if unit.latest_at else "baseline"
    return "rerun" if unit.attempt else "schedule"


def _observed_number(evaluation: Evaluation) -> float | None:
    """Durations in seconds, shares as fractions of one: for plots."""
    if isinstance(evaluation.observed, timedelta):
        return evaluation.observed.total_seconds()
    return None if evaluation.observed is None else float(evaluation.observed)


def apply_result(row: Unit, run: Execution, result: Result, *, now: datetime) -> Flip | None:
    """The row with one more observation: facts, verdict, what was seen, when it is run next."""
    version = run.unit.test.version
    assert version is not None
    for name in ("observed", "threshold", "detail"):
        setattr(row, name, getattr(result, name))
    row.tested_instant = result.instant
    if run.evaluation.complete_until is not None:
        row.affected_from = run.evaluation.complete_until
    facts = observe(unit_facts(row), Outcome(result.outcome), read_at=result.read_at, sustain=version.sustain)
    flip = apply_facts(row, facts, now=now, result=result)
    reschedule(row, run.unit, facts, now=now)
    return flip


def reschedule(row: Unit, claimed: Unit, facts: UnitFacts, *, now: datetime) -> None:
    """When it is run next: the rerun of a failure, the cadence, the retest of a commit that came after the reading, or
    what was asked for meanwhile; whichever is first."""
    next_at, attempt = _rerun_or_cadence(row, facts, now=now)
    row.leased_by, row.leased_until, row.attempt = "", None, attempt
    choices = [(next_at, Lane.DUE), (_retest_at(facts, now), Lane.LATE)]
    if (row.due_at, row.lane) != (claimed.due_at, claimed.lane):
        choices.append((row.due_at, Lane(row.lane)))
    first = min(((at, lane) for at, lane in choices if at is not None), default=None)
    row.due_at, row.lane = first or (None, Lane.DUE)


def _retest_at(facts: UnitFacts, read_at: datetime) -> datetime | None:
    """Only a PASS settles what a commit touched; but a FAIL that has read the commit is rerun in its own rhythm."""
    if facts.retest_due_at is None or facts.touched_at is None or facts.touched_at <= read_at:
        return None
    return max(read_at, facts.retest_due_at - OVERDUE_AFTER)


def _rerun_or_cadence(row: Unit, facts: UnitFacts, *, now: datetime) -> tuple[datetime | None, int]:
    """The rerun or the cadence, and how many reruns there were then."""
    version = row.test.version
    if version is None or row.test.retired_at is not None:
        return None, 0
    backoff = Backoff(version.rerun_base, version.rerun_cap)
    decision = next_rerun(facts, reruns=row.attempt, backoff=backoff, jitter=random.random(), now=now)
    regular = None if version.cadence is None else now + version.cadence
    if isinstance(decision, RerunAt):
        return (decision.at if regular is None else min(decision.at, regular)), row.attempt + 1
    return regular, 0
