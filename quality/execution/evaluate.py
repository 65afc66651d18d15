"""Evaluates the units of a claim from what was measured. A unit that cannot be evaluated gets an ERROR; the others go on."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Outcome
from quality.domain.evaluation.evaluate import Evaluation, evaluate
from quality.domain.language import ExpressionError
from quality.domain.language.values import EvaluationContext
from quality.domain.parsed import compares_with_past, parsed
from quality.measuring.measure import CacheUse, UnitAnswers
from quality.models import Unit
from quality.state.baseline_exclusions import confirmed_bad_ranges

logger = logging.getLogger(__name__)

SEE_LOG = "see the worker's log"


@dataclass(frozen=True)
class Execution:
    """One execution: the unit as it was claimed, what came out, at which commit, and what was not measured anew."""

    unit: Unit
    evaluation: Evaluation
    instant: str
    cache_use: CacheUse | None = None


def evaluate_units(claimed: Sequence[Unit], answers: Mapping[int, UnitAnswers], *, now: datetime) -> list[Execution]:
    """One for each unit; `answers` are by its id. What was bad is looked up only if a test compares itself with the past."""
    expressions = {unit.test.version.flattened for unit in claimed if unit.test.version is not None}
    excluded = confirmed_bad_ranges(claimed[0].copy) if any(map(compares_with_past, expressions)) else ()
    return [_evaluate_or_fail(unit, answers[unit.pk], excluded, now=now) for unit in claimed]


def _evaluate_or_fail(unit: Unit, answers: UnitAnswers, excluded: tuple[Interval, ...], *, now: datetime) -> Execution:
    try:
        return _evaluate(unit, answers, excluded, now=now)
    except ExpressionError as problem:
        return failed_execution(unit, f"The test is not understood: {problem.problem}", answers.instant)
    except Exception as problem:
        logger.exception("Unit %s cannot be evaluated", unit.pk)
        return failed_execution(unit, f"The evaluation failed ({type(problem).__name__}): {SEE_LOG}", answers.instant)


def failed_execution(unit: Unit, cause: str, instant: str) -> Execution:
    """Only the log has an unforeseen message: nobody has looked what of the data is in it."""
    assert unit.test.version is not None
    return Execution(unit, Evaluation(Outcome.ERROR, unit.test.version.expression, cause=cause), instant)


def _evaluate(unit: Unit, answers: UnitAnswers, excluded: tuple[Interval, ...], *, now: datetime) -> Execution:
    assert unit.test.version is not None
    dataset = unit.test.dataset
    # What was never watched does not hold freshness back.
    moment = EvaluationContext(
        now,
        dataset.partition_grain,
        dataset.zone,
        unit.copy.monitored_from,
        partition=Interval(unit.start, unit.end),
        excluded_ranges=excluded,
    )
    evaluation = evaluate(parsed(unit.test.version.flattened), answers.by_ask, moment, groups=answers.groups)
    return Execution(unit, evaluation, answers.instant, answers.reused)
