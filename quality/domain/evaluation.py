"""Running a test that was measured: values go up from the leaves in post-order, and the outcome says what it was made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

from lakehub.kernel.outcome import Outcome
from quality.domain.expression import Call, Expression, Literal, Node, formula, leaf_calls
from quality.domain.expression.amounts import shown
from quality.domain.expression.checker import kind_of, series_calls
from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves import LEAVES
from quality.domain.expression.measures import Answer, Ask
from quality.domain.expression.nodes import Amount
from quality.domain.expression.operators import COMPARISONS, OPERATORS
from quality.domain.expression.series import SERIES
from quality.domain.expression.values import Failed, Known, Moment, Value
from quality.domain.groups import SIZES, Choice, Group, Groups, answers_of, chosen, grouped, named
from quality.domain.production import production
from quality.domain.valuation import Values, asks_within

_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_EXCHANGED = ("matching", "sampled")


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
    margin: float = 0
    """By how much the comparison that decided fails (below zero: holds); to find the worst of several groups."""
    groups: Groups | None = None
    exchanged: Mapping[str | None, Any] | None = None
    """What an exchange between two places says besides its counts, such as the missing records."""


@lru_cache(maxsize=8192)
def asks(expression: Expression) -> tuple[Ask, ...]:
    """All the measures that the test needs, each once, in a stable order. Of a dimension test the sizes of the groups too."""
    wanted = asks_within(expression.assertion)
    return wanted if expression.parameters.by is None else tuple(dict.fromkeys((SIZES, *wanted)))


def evaluate(
    expression: Expression, answers: Mapping[Ask, Answer | Failed], moment: Moment, *, groups: int = 0
) -> Evaluation:
    """The outcome of a test. `answers` has every one of its asks; a measure that failed is a value like the others.

    `groups`: how many groups a dimension test has in all, where not all were measured.
    """
    moment = _on_its_calendar(expression, moment)
    if expression.parameters.by is None:
        return _evaluated(expression, Values(answers, moment))
    sizes = answers[SIZES]
    if isinstance(sizes, Failed):
        return _failed(expression, sizes.outcome, sizes.cause)
    choice = chosen(cast("Mapping[str | None, int]", sizes), expression.parameters, groups)
    return _by_group(expression, choice, answers, moment)


def _on_its_calendar(expression: Expression, moment: Moment) -> Moment:
    given = expression.parameters
    if given.calendar is None and given.holidays is None:
        return moment
    return replace(moment, produced=production(given.calendar or "", given.holidays or "", moment.zone))


def _evaluated(expression: Expression, values: Values) -> Evaluation:
    verdict = values.of(expression.assertion)
    if isinstance(verdict, Failed):
        return replace(_failed(expression, verdict.outcome, verdict.cause), facts=_facts(expression, values))
    return _judged(expression, bool(verdict.amount), values)


def _failed(expression: Expression, outcome: Outcome, cause: str) -> Evaluation:
    return Evaluation(outcome, formula(expression.assertion), cause=cause)


def _by_group(
    expression: Expression, choice: Choice, answers: Mapping[Ask, Answer | Failed], moment: Moment
) -> Evaluation:
    """The worst group speaks for all: one that fails, else one that could not be judged, else the nearest to failing."""
    found = {name: _evaluated(expression, Values(answers_of(name, answers), moment)) for name in choice.sizes}
    order = sorted(found, key=lambda name: (_SPEAKS.index(found[name].outcome), -found[name].margin))
    groups = grouped(
        expression.parameters.by or "", choice, [_group(name, choice.sizes[name], found[name]) for name in order]
    )
    if not order:
        small = choice.too_small
        why = f"all {small:,} groups are too small to be judged" if small else "there are no rows"
        return replace(_failed(expression, Outcome.NO_DATA, why), groups=groups)
    worst = found[order[0]]
    behind, cause = (f"{named(order[0])}: {said}" if said else "" for said in (worst.behind, worst.cause))
    return replace(worst, behind=behind, cause=cause, groups=groups)


_SPEAKS = (Outcome.FAIL, Outcome.ERROR, Outcome.NO_DATA, Outcome.PASS)


def _group(name: str | None, rows: int, found: Evaluation) -> Group:
    return Group(name, rows, found.outcome, found.observed_text, found.behind, found.cause)


def _judged(expression: Expression, holds: bool, values: Values) -> Evaluation:
    decisive = _decisive(expression.assertion, holds, values)
    observed, threshold = _sides(decisive)
    value = values.of(observed)
    amount = value.amount if isinstance(value, Known) else None
    return Evaluation(
        outcome=Outcome.PASS if holds else Outcome.FAIL,
        formula=formula(expression.assertion),
        observed=amount,
        observed_text="" if amount is None else shown(amount, _kind_shown(observed, threshold)),
        threshold=threshold if isinstance(threshold, str) else _threshold(decisive, threshold, values),
        behind=_behind(observed, values),
        facts=_facts(expression, values),
        complete_until=_complete_until(expression, values),
        margin=_margin(decisive, values),
        exchanged=_exchanged(expression, values),
    )


def _decisive(node: Node, holds: bool, values: Values) -> Node:
    """The comparison that made it so: of several the first that has the same truth as the whole."""
    if not isinstance(node, Call) or node.function not in ("and", "or", "not"):
        return node
    if node.function == "not":
        return _decisive(node.args[0], not holds, values)
    same = [
        arg for arg in node.args if (value := values.of(arg)) and isinstance(value, Known) and value.amount is holds
    ]
    return _decisive((same or list(node.args))[0], holds, values)


def _sides(comparison: Node) -> tuple[Node, Node | str]:
    """What was observed, and what it was held against; a constant on the left is the threshold."""
    if not isinstance(comparison, Call) or comparison.function not in COMPARISONS:
        return comparison, ""
    left, right = comparison.args
    return (right, left) if isinstance(left, Literal) else (left, right)


def _kind_shown(observed: Node, threshold: Node | str) -> Kind:
    """A number that is held against a percentage is shown as one."""
    kind = kind_of(observed)
    as_share = kind is Kind.NUMBER and isinstance(threshold, Literal) and threshold.kind is Kind.RATIO
    return Kind.RATIO if as_share else kind


def _threshold(comparison: Node, threshold: Node, values: Values) -> str:
    assert isinstance(comparison, Call)
    name = comparison.function if comparison.args[1] is threshold else _TURNED[comparison.function]
    value = values.of(threshold)
    kind = kind_of(threshold)
    if isinstance(threshold, Literal):
        return f"{OPERATORS[name].symbol} {formula(threshold)}"
    return f"{OPERATORS[name].symbol} {shown(value.amount, kind)}" if isinstance(value, Known) else ""


def _margin(comparison: Node, values: Values) -> float:
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


def _exchanged(expression: Expression, values: Values) -> Mapping[str | None, Any] | None:
    for call in leaf_calls(expression):
        for answer in values.answers_of(call):
            if call.function in _EXCHANGED and isinstance(answer, Mapping):
                return answer
    return None


def _behind(observed: Node, values: Values) -> str:
    """The counts of a share: `975 of 985`; of `1 - share` those that are missing from it."""
    if not isinstance(observed, Call):
        return ""
    if observed.function in _EXCHANGED:
        return _exchange_counts(observed, values)
    if observed.function == "sub" and isinstance(observed.args[0], Literal) and observed.args[0].value == 1:
        counts = _counts(observed.args[1], values)
        return f"{counts[1] - counts[0]:,} of {counts[1]:,}" if counts else ""
    counts = _counts(observed, values)
    return f"{counts[0]:,} of {counts[1]:,}" if counts else ""


def _counts(share: Node, values: Values) -> tuple[int, int] | None:
    if not isinstance(share, Call) or share.function != "div":
        return None
    sides = [values.of(arg) for arg in share.args]
    amounts = [side.amount for side in sides if isinstance(side, Known)]
    whole = [amount.numerator for amount in amounts if isinstance(amount, Fraction) and amount.denominator == 1]
    return (whole[0], whole[1]) if len(whole) == 2 else None


def _exchange_counts(call: Call, values: Values) -> str:
    answer = next((one for one in values.answers_of(call) if isinstance(one, Mapping)), None)
    return "" if answer is None else f"{answer['matching']:,} of {answer['keys']:,}"


def _facts(expression: Expression, values: Values) -> dict[str, str]:
    """Each leaf with its value, or why it has none."""
    facts = {}
    for call in leaf_calls(expression):
        value = values.of(call)
        facts[formula(call)] = (
            shown(value.amount, LEAVES.get(call.function).kind)
            if isinstance(value, Known)
            else value.cause.removeprefix(f"{formula(call)}: ")
        )
    for call in series_calls(expression):
        if isinstance(value := values.of(call), Known):
            facts |= {formula(call): shown(value.amount, SERIES.get(call.function).kind), **dict(value.facts)}
    return facts


def _complete_until(expression: Expression, values: Values) -> datetime | None:
    """c of the freshness leaf that is furthest behind."""
    found = [value.complete_until for call in leaf_calls(expression) if isinstance(value := values.of(call), Known)]
    return min((c for c in found if c is not None), default=None)
