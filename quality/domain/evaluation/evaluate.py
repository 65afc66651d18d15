"""Running a test that was measured: values go up from the leaves in post-order, and the outcome says what it was made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any

from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.partitions import Grain, partition_at, partition_name
from quality.domain.evaluation.groups import (
    GROUP_SIZES,
    GroupOutcome,
    GroupSelection,
    GroupSummary,
    answers_of_group,
    group_label,
    select_groups,
    sizes_of_all_sides,
    summarize_groups,
)
from quality.domain.evaluation.node_values import NodeValues, asks_within
from quality.domain.language import UPSTREAM, Call, Expression, Literal, Node, formula, function_calls
from quality.domain.language.functions import FUNCTIONS
from quality.domain.language.measures import ROWS, Answer, Ask, Reach
from quality.domain.language.operators import COMPARISONS, OPERATORS
from quality.domain.language.tree.literals import display_amount
from quality.domain.language.tree.nodes import Amount
from quality.domain.language.type_checker import value_type_of, window_function_calls
from quality.domain.language.values import EvaluationContext, Failed, Known, Value
from quality.domain.language.window_functions import WINDOW_FUNCTIONS
from quality.domain.timeliness.lateness import late_from
from quality.domain.timeliness.production_calendar import parse_calendar
from quality.domain.value_types import ValueType

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_TWO_SIDED = ("matching", "sampled", "difference")
_NAMING = (*_TWO_SIDED, "across_partitions")
"""Leaves whose answer names records besides its counts."""


@dataclass(frozen=True)
class Evaluation:
    """What came out. `observed` is what was compared, `threshold` is `> 99.9%`, `behind` the counts: `975 of 985`."""

    outcome: Outcome
    formula: str
    observed: Amount | None = None
    observed_text: str = ""
    threshold: str = ""
    behind: str = ""
    facts: Mapping[str, str] | None = None
    cause: str = ""
    complete_until: datetime | None = None
    failure_margin: float = 0
    """By how much the comparison that decided fails (below zero: holds); to find the worst of several groups."""
    groups: GroupSummary | None = None
    naming_answer: Mapping[str | None, Any] | None = None
    """What a leaf says besides its counts, such as the records that are missing, differ or repeat."""


@lru_cache(maxsize=8192)
def asks_of_expression(expression: Expression) -> tuple[Ask, ...]:
    """All the measures that the test needs, each once, in a stable order. Of a dimension test the sizes of the groups too."""
    asks = asks_within(expression.assertion)
    return asks if expression.parameters.by is None else tuple(dict.fromkeys((GROUP_SIZES, *asks)))


def evaluate(
    expression: Expression, answers: Mapping[Ask, Answer | Failed], moment: EvaluationContext, *, groups: int = 0
) -> Evaluation:
    """The outcome of a test. `answers` has every one of its asks; a measure that failed is a value like the others.

    `groups`: how many groups a dimension test has in all, where not all were measured.
    """
    moment = _on_its_calendar(expression, moment)
    moment = replace(moment, awaited=moment.awaited | held_upstream(answers, moment))
    if expression.parameters.by is None:
        return _evaluate_assertion(expression, NodeValues(answers, moment))
    sizes = answers[GROUP_SIZES]
    if isinstance(sizes, Failed):
        return _failed_evaluation(expression, sizes.outcome, sizes.cause)
    choice = select_groups(sizes_of_all_sides(answers), expression.parameters, groups)
    return _evaluate_groups(expression, choice, answers, moment)


def held_upstream(answers: Mapping[Ask, Answer | Failed], moment: EvaluationContext) -> frozenset[Interval]:
    """The partitions of which upstream holds rows, by what was measured: rows are expected in them."""
    if moment.partition.is_everything:
        return frozenset()
    shifts = {ask.table.shift for ask, answer in answers.items() if _shows_rows_upstream(ask, answer)}
    return frozenset(moment.shifted(shift).partition for shift in shifts)


def _shows_rows_upstream(ask: Ask, answer: Answer | Failed) -> bool:
    """A count of rows, in all or by group, or the keys that were looked for."""
    if ask.reach is not Reach.PARTITION:
        return False
    if ask.measure == ROWS and ask.table.dataset == UPSTREAM and not ask.table.data_center:
        counts = answer.values() if isinstance(answer, Mapping) else [answer]
        return any(isinstance(count, int) and count > 0 for count in counts)
    looks_upstream = ask.measure.other is not None and ask.measure.other.dataset == UPSTREAM
    return looks_upstream and isinstance(answer, Mapping) and bool(answer.get("keys"))


def _on_its_calendar(expression: Expression, moment: EvaluationContext) -> EvaluationContext:
    given = expression.parameters
    if given.calendar is None and given.holidays is None:
        return moment
    return replace(moment, production_calendar=parse_calendar(given.calendar or "", given.holidays or "", moment.zone))


def _evaluate_assertion(expression: Expression, values: NodeValues) -> Evaluation:
    verdict = values.of(expression.assertion)
    if isinstance(verdict, Failed):
        return replace(_failed_evaluation(expression, verdict.outcome, verdict.cause), facts=_facts(expression, values))
    return _verdict_of_values(expression, bool(verdict.amount), values)


def _failed_evaluation(expression: Expression, outcome: Outcome, cause: str) -> Evaluation:
    return Evaluation(outcome, formula(expression.assertion), cause=cause)


def _evaluate_groups(
    expression: Expression, choice: GroupSelection, answers: Mapping[Ask, Answer | Failed], moment: EvaluationContext
) -> Evaluation:
    """The worst group speaks for all: one that fails, else one that could not be judged, else the nearest to failing."""
    evaluations = {
        name: _evaluate_assertion(expression, NodeValues(answers_of_group(name, answers), moment))
        for name in choice.sizes
    }
    order = sorted(
        evaluations, key=lambda name: (_PRECEDENCE.index(evaluations[name].outcome), -evaluations[name].failure_margin)
    )
    groups = summarize_groups(
        expression.parameters.by or "",
        choice,
        [_group_of(name, choice.sizes[name], evaluations[name]) for name in order],
    )
    if not order:
        small = choice.too_small
        why = f"all {small:,} groups are too small to be judged" if small else "there are no rows"
        return replace(_failed_evaluation(expression, Outcome.NO_DATA, why), groups=groups)
    worst = evaluations[order[0]]
    behind, cause = (f"{group_label(order[0])}: {text}" if text else "" for text in (worst.behind, worst.cause))
    return replace(worst, behind=behind, cause=cause, groups=groups)


_PRECEDENCE = (Outcome.FAIL, Outcome.ERROR, Outcome.NO_DATA, Outcome.PASS, Outcome.SKIPPED)


def _group_of(name: str | None, rows: int, evaluation: Evaluation) -> GroupOutcome:
    return GroupOutcome(name, rows, evaluation.outcome, evaluation.observed_text, evaluation.behind, evaluation.cause)


def _verdict_of_values(expression: Expression, holds: bool, values: NodeValues) -> Evaluation:
    decisive = _decisive(expression.assertion, holds, values)
    observed, threshold = _observed_and_threshold(decisive)
    value = values.of(observed)
    amount = value.amount if isinstance(value, Known) else None
    evaluation = Evaluation(
        outcome=Outcome.PASS if holds else Outcome.FAIL,
        formula=formula(expression.assertion),
        observed=amount,
        observed_text="" if amount is None else display_amount(amount, _display_type(observed, threshold)),
        threshold=threshold if isinstance(threshold, str) else _threshold_text(decisive, threshold, values),
        behind=_counts_text(observed, values),
        facts=_facts(expression, values),
        complete_until=_complete_until(expression, values),
        failure_margin=_margin(decisive, values),
        naming_answer=_naming_answer(expression, values),
    )
    if isinstance(value, Known) and value.complete_until is not None and isinstance(threshold, Literal):
        return _with_age(evaluation, decisive, threshold, value.complete_until, values.moment)
    return evaluation


def _with_age(
    evaluation: Evaluation, comparison: Node, limit: Literal, c: datetime, moment: EvaluationContext
) -> Evaluation:
    """People are told how old the data is, `now - c`; what it may be is the SLA after the end of the bucket that is due."""
    assert isinstance(comparison, Call)
    assert isinstance(limit.value, timedelta)
    allowed = limit.value + late_from(c, grain=moment.grain, zone=moment.zone, produced=moment.production_calendar) - c
    name = comparison.function if comparison.args[1] is limit else _MIRRORED[comparison.function]
    due = (
        ""
        if moment.grain is Grain.NONE
        else partition_name(partition_at(c, moment.grain, moment.zone), moment.grain, moment.zone)
    )
    return replace(
        evaluation,
        observed=moment.now - c,
        observed_text=display_amount(moment.now - c, ValueType.DURATION),
        threshold=f"{OPERATORS[name].symbol} {display_amount(allowed, ValueType.DURATION)}",
        behind=f"{due} is due" if due else "",
    )


def _decisive(node: Node, holds: bool, values: NodeValues) -> Node:
    """The comparison that made it so: of several the first that has the same truth as the whole."""
    if not isinstance(node, Call) or node.function not in ("and", "or", "not"):
        return node
    if node.function == "not":
        return _decisive(node.args[0], not holds, values)
    same = [
        arg for arg in node.args if (value := values.of(arg)) and isinstance(value, Known) and value.amount is holds
    ]
    return _decisive((same or list(node.args))[0], holds, values)


def _observed_and_threshold(comparison: Node) -> tuple[Node, Node | str]:
    """What was observed, and what it was held against; a constant on the left is the threshold."""
    if not isinstance(comparison, Call) or comparison.function not in COMPARISONS:
        return comparison, ""
    left, right = comparison.args
    return (right, left) if isinstance(left, Literal) else (left, right)


def _display_type(observed: Node, threshold: Node | str) -> ValueType:
    """A number that is held against a percentage is shown as one."""
    kind = value_type_of(observed)
    as_share = kind is ValueType.NUMBER and isinstance(threshold, Literal) and threshold.value_type is ValueType.RATIO
    return ValueType.RATIO if as_share else kind


def _threshold_text(comparison: Node, threshold: Node, values: NodeValues) -> str:
    assert isinstance(comparison, Call)
    name = comparison.function if comparison.args[1] is threshold else _MIRRORED[comparison.function]
    value = values.of(threshold)
    kind = value_type_of(threshold)
    if isinstance(threshold, Literal):
        return f"{OPERATORS[name].symbol} {formula(threshold)}"
    return f"{OPERATORS[name].symbol} {display_amount(value.amount, kind)}" if isinstance(value, Known) else ""


def _margin(comparison: Node, values: NodeValues) -> float:
    if not isinstance(comparison, Call) or comparison.function not in COMPARISONS:
        return 0
    left, right = (_number(values.of(arg)) for arg in comparison.args)
    if comparison.function in ("eq", "ne"):
        return abs(left - right) if comparison.function == "eq" else -abs(left - right)
    return left - right if comparison.function in ("lt", "le") else right - left


def _number(value: Value) -> float:
    if isinstance(value, Failed):
        return 0
    assert not isinstance(value.amount, str)
    return value.amount.total_seconds() if isinstance(value.amount, timedelta) else float(value.amount)


def _naming_answer(expression: Expression, values: NodeValues) -> Mapping[str | None, Any] | None:
    for call in function_calls(expression):
        for answer in values.answers_of(call):
            if call.function in _NAMING and isinstance(answer, Mapping):
                return answer
    return None


def _counts_text(observed: Node, values: NodeValues) -> str:
    """The counts of a share: `975 of 985`; of `1 - share` those that are missing from it."""
    if not isinstance(observed, Call):
        return ""
    if observed.function == "across_partitions":
        return _repeated_counts(observed, values)
    if observed.function in _TWO_SIDED:
        return _two_sided_counts(observed, values)
    if observed.function == "sub" and isinstance(observed.args[0], Literal) and observed.args[0].value == 1:
        counts = _counts(observed.args[1], values)
        return f"{counts[1] - counts[0]:,} of {counts[1]:,}" if counts else ""
    counts = _counts(observed, values)
    return f"{counts[0]:,} of {counts[1]:,}" if counts else ""


def _counts(share: Node, values: NodeValues) -> tuple[int, int] | None:
    if not isinstance(share, Call) or share.function != "div":
        return None
    sides = [values.of(arg) for arg in share.args]
    amounts = [side.amount for side in sides if isinstance(side, Known)]
    whole = [amount.numerator for amount in amounts if isinstance(amount, Fraction) and amount.denominator == 1]
    return (whole[0], whole[1]) if len(whole) == 2 else None


def _repeated_counts(call: Call, values: NodeValues) -> str:
    answer = next((answer for answer in values.answers_of(call) if isinstance(answer, Mapping)), None)
    if answer is None:
        return ""
    more = "at least " if answer["report"].get("at_least") else ""
    return f"{more}{answer['keys']:,} key{'' if answer['keys'] == 1 else 's'} in more than one partition"


def _two_sided_counts(call: Call, values: NodeValues) -> str:
    answer = next((answer for answer in values.answers_of(call) if isinstance(answer, Mapping)), None)
    if answer is None:
        return ""
    if not answer["keys"]:
        return "no keys on the other side"
    return f"{answer['differing' if call.function == 'difference' else 'matching']:,} of {answer['keys']:,}"


def _facts(expression: Expression, values: NodeValues) -> dict[str, str]:
    """Each leaf with its value, or why it has none."""
    facts = {}
    for call in function_calls(expression):
        value = values.of(call)
        facts[formula(call)] = (
            display_amount(value.amount, FUNCTIONS.get(call.function).value_type)
            if isinstance(value, Known)
            else value.cause.removeprefix(f"{formula(call)}: ")
        )
    for call in window_function_calls(expression):
        if isinstance(value := values.of(call), Known):
            facts |= {
                formula(call): display_amount(value.amount, WINDOW_FUNCTIONS.get(call.function).value_type),
                **dict(value.facts),
            }
    return facts


def _complete_until(expression: Expression, values: NodeValues) -> datetime | None:
    """c of the freshness leaf that is furthest behind."""
    boundaries = [
        value.complete_until for call in function_calls(expression) if isinstance(value := values.of(call), Known)
    ]
    return min((c for c in boundaries if c is not None), default=None)
