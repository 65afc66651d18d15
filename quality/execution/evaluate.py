"""Evaluates the units of a claim from what was measured. A unit that cannot be evaluated gets an ERROR; the others go on."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Outcome
from quality.domain.evaluation.evaluate import Evaluation, evaluate, held_upstream
from quality.domain.language import THIS, ExpressionError, Name
from quality.domain.language.measures import Ask, Reach
from quality.domain.language.values import EvaluationContext
from quality.domain.parsed import asks_of_version, compares_with_past, is_parsable, parsed
from quality.domain.timeliness.production_calendar import BadCalendar, ProductionCalendar, calendar_of_overrides
from quality.measuring.measure import CacheUse, UnitAnswers
from quality.models import Category, Unit
from quality.state.baseline_exclusions import confirmed_bad_ranges
from quality.state.populated_partitions import awaited_among

logger = logging.getLogger(__name__)

SEE_LOG = "see the worker's log"


@dataclass(frozen=True)
class Execution:
    """One execution: the unit as it was claimed, what came out, at which commit, and what was not measured anew."""

    unit: Unit
    evaluation: Evaluation
    instant: str
    cache_use: CacheUse | None = None


@dataclass(frozen=True)
class CopyContext:
    """What the units of one copy have in common: the ranges that were bad, when partitions are produced, and which others
    are awaited."""

    excluded_ranges: tuple[Interval, ...]
    production_calendar: ProductionCalendar | None
    awaited: frozenset[Interval] = frozenset()


def evaluate_units(claimed: Sequence[Unit], answers: Mapping[int, UnitAnswers], *, now: datetime) -> list[Execution]:
    """One for each unit; `answers` are by its id. What was bad is looked up only if a test compares itself with the past."""
    expressions = {unit.test.version.flattened for unit in claimed if unit.test.version is not None}
    excluded = confirmed_bad_ranges(claimed[0].copy) if any(map(compares_with_past, expressions)) else ()
    around = CopyContext(excluded, _production_calendar(claimed[0].copy.dataset))
    moments = {unit.pk: _moment(unit, around, now=now) for unit in claimed if unit.test.version is not None}
    awaited = _awaited(claimed[0].copy, moments, answers)
    around = replace(around, awaited=awaited)
    return [_evaluate_or_fail(unit, answers[unit.pk], around, now=now) for unit in claimed]


def _awaited(
    copy: DatasetCopy, moments: Mapping[int, EvaluationContext], answers: Mapping[int, UnitAnswers]
) -> frozenset[Interval]:
    """Of what would not be expected: the partitions that hold rows upstream, as any test of the claim has seen, and what is
    known to be awaited whatever is seen now."""
    unexpected = {moment.partition for moment in moments.values() if not moment.expects_rows}
    if not unexpected:
        return frozenset()
    upstream = (held_upstream(answers[pk].by_ask, moment) for pk, moment in moments.items())
    return frozenset().union(*upstream) | awaited_among(copy, unexpected)


def _production_calendar(dataset: Dataset) -> ProductionCalendar | None:
    """What cannot be read is reported where the tests are made; until it is mended every partition is expected."""
    with suppress(BadCalendar):
        return calendar_of_overrides(dataset.overrides, dataset.zone)
    return None


def _evaluate_or_fail(unit: Unit, answers: UnitAnswers, around: CopyContext, *, now: datetime) -> Execution:
    try:
        return _evaluate(unit, answers, around, now=now)
    except ExpressionError as problem:
        return failed_execution(unit, f"The test is not understood: {problem.problem}", answers.instant)
    except Exception as problem:
        logger.exception("Unit %s cannot be evaluated", unit.pk)
        return failed_execution(unit, f"The evaluation failed ({type(problem).__name__}): {SEE_LOG}", answers.instant)


def failed_execution(unit: Unit, cause: str, instant: str) -> Execution:
    """Only the log has an unforeseen message: nobody has looked what of the data is in it."""
    assert unit.test.version is not None
    return Execution(unit, Evaluation(Outcome.ERROR, unit.test.version.expression, cause=cause), instant)


def _evaluate(unit: Unit, answers: UnitAnswers, around: CopyContext, *, now: datetime) -> Execution:
    assert unit.test.version is not None
    moment = _moment(unit, around, now=now)
    evaluation = evaluate(parsed(unit.test.version.flattened), answers.by_ask, moment, groups=answers.groups)
    return Execution(unit, evaluation, answers.instant, answers.reused)


def _moment(unit: Unit, around: CopyContext, *, now: datetime) -> EvaluationContext:
    assert unit.test.version is not None
    dataset = unit.test.dataset
    # What was never watched does not hold freshness back.
    return EvaluationContext(
        now,
        dataset.partition_grain,
        dataset.zone,
        unit.copy.monitored_from,
        partition=Interval(unit.start, unit.end),
        excluded_ranges=around.excluded_ranges,
        production_calendar=around.production_calendar,
        due_after=unit.test.version.due_after,
        event_zone=dataset.event_zone,
        awaited=around.awaited,
    )


ROW_KINDS = frozenset({"nulls", "outside", "unexpected", "mismatched", "unmatched"})


def may_have_rows(run: Execution) -> bool:
    """It failed, and its test counts rows that break it, or named them already."""
    if run.evaluation.outcome is not Outcome.FAIL:
        return False
    return bool((run.evaluation.naming_answer or {}).get("rows")) or next(row_asks(run.unit), None) is not None


def row_asks(unit: Unit) -> Iterator[Ask]:
    """What the test asks of the tested rows of its own table; of a test of duplicates the keys that repeat."""
    assert unit.test.version is not None
    flattened = unit.test.version.flattened
    kinds = ROW_KINDS | {"distinct", "repeated"} if unit.test.category == Category.DUPLICATES else ROW_KINDS
    for ask in asks_of_version(flattened) if is_parsable(flattened) else ():
        if ask.measure.kind in kinds and ask.table == Name(THIS) and ask.reach is not Reach.EACH_PARTITION:
            yield ask
