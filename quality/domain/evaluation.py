"""Running a test that was measured: values go up from the leaves in post-order, and the outcome says what it was made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from lakehub.kernel.outcome import Outcome
from quality.domain.expression import Call, Expression, Literal, Node, asks_of, formula, leaf_calls
from quality.domain.expression.amounts import shown
from quality.domain.expression.checker import kind_of
from quality.domain.expression.leaves import LEAVES
from quality.domain.expression.measures import Answer, Ask
from quality.domain.expression.nodes import Amount
from quality.domain.expression.operators import COMPARISONS, OPERATORS, EmptyDenominator
from quality.domain.expression.values import Failed, Known, Moment, Value, error, no_data

_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


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


def asks(expression: Expression) -> tuple[Ask, ...]:
    """All the measures that the test needs, each once, in a stable order."""
    return tuple(dict.fromkeys(ask for call in leaf_calls(expression) for ask in asks_of(call)))


def evaluate(expression: Expression, answers: Mapping[Ask, Answer | Failed], moment: Moment) -> Evaluation:
    """The outcome of a test. `answers` has every one of its asks; a measure that failed is a value like the others."""
    values = _Values(answers, moment)
    verdict = values.of(expression.assertion)
    if isinstance(verdict, Failed):
        return Evaluation(
            verdict.outcome, formula(expression.assertion), cause=verdict.cause, facts=_facts(expression, values)
        )
    return _judged(expression, bool(verdict.amount), values)


class _Values:
    """The value of each node, worked out once."""

    def __init__(self, answers: Mapping[Ask, Answer | Failed], moment: Moment) -> None:
        self._answers = answers
        self._moment = moment
        self._known: dict[Node, Value] = {}

    def of(self, node: Node) -> Value:
        if node not in self._known:
            self._known[node] = self._work_out(node)
        return self._known[node]

    def _work_out(self, node: Node) -> Value:
        if isinstance(node, Literal):
            return Known(node.value)
        if not isinstance(node, Call):
            raise TypeError(f"{node} has no value: the expression was not checked.")
        return self._leaf(node) if node.function in LEAVES else self._operation(node)

    def _leaf(self, call: Call) -> Value:
        answers: list[Answer] = []
        for ask in asks_of(call):
            answer = self._answers[ask]
            if isinstance(answer, Failed):
                return Failed(answer.outcome, f"{formula(call)}: {answer.cause}")
            answers.append(answer)
        value = LEAVES.get(call.function).value(answers, self._moment)
        return Failed(value.outcome, f"{formula(call)}: {value.cause}") if isinstance(value, Failed) else value

    def _operation(self, call: Call) -> Value:
        args = [self.of(arg) for arg in call.args]
        failed = [arg for arg in args if isinstance(arg, Failed)]
        if failed:
            # An error says more than missing data does.
            return min(failed, key=lambda one: one.outcome is not Outcome.ERROR)
        try:
            return Known(OPERATORS[call.function].apply(*(arg.amount for arg in args if isinstance(arg, Known))))
        except EmptyDenominator:
            return no_data(f"{formula(call.args[1])} is 0, so there is nothing to compare with")
        except OverflowError:
            return error(f"{formula(call)} is too large")


def _judged(expression: Expression, holds: bool, values: _Values) -> Evaluation:
    decisive = _decisive(expression.assertion, holds, values)
    observed, threshold = _sides(decisive)
    value = values.of(observed)
    amount = value.amount if isinstance(value, Known) else None
    return Evaluation(
        outcome=Outcome.PASS if holds else Outcome.FAIL,
        formula=formula(expression.assertion),
        observed=amount,
        observed_text="" if amount is None else shown(amount, kind_of(observed)),
        threshold=threshold if isinstance(threshold, str) else _threshold(decisive, threshold, values),
        behind=_behind(observed, values),
        facts=_facts(expression, values),
        complete_until=_complete_until(expression, values),
    )


def _decisive(node: Node, holds: bool, values: _Values) -> Node:
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


def _threshold(comparison: Node, threshold: Node, values: _Values) -> str:
    assert isinstance(comparison, Call)
    name = comparison.function if comparison.args[1] is threshold else _TURNED[comparison.function]
    value = values.of(threshold)
    kind = kind_of(threshold)
    if isinstance(threshold, Literal):
        return f"{OPERATORS[name].symbol} {formula(threshold)}"
    return f"{OPERATORS[name].symbol} {shown(value.amount, kind)}" if isinstance(value, Known) else ""


def _behind(observed: Node, values: _Values) -> str:
    """The counts of a share: `975 of 985`; of `1 - share` those that are missing from it."""
    if not isinstance(observed, Call):
        return ""
    if observed.function == "sub" and isinstance(observed.args[0], Literal) and observed.args[0].value == 1:
        counts = _counts(observed.args[1], values)
        return f"{counts[1] - counts[0]:,} of {counts[1]:,}" if counts else ""
    counts = _counts(observed, values)
    return f"{counts[0]:,} of {counts[1]:,}" if counts else ""


def _counts(share: Node, values: _Values) -> tuple[int, int] | None:
    if not isinstance(share, Call) or share.function != "div":
        return None
    sides = [values.of(arg) for arg in share.args]
    amounts = [side.amount for side in sides if isinstance(side, Known)]
    whole = [amount.numerator for amount in amounts if isinstance(amount, Fraction) and amount.denominator == 1]
    return (whole[0], whole[1]) if len(whole) == 2 else None


def _facts(expression: Expression, values: _Values) -> dict[str, str]:
    """Each leaf with its value, or why it has none."""
    facts = {}
    for call in leaf_calls(expression):
        value = values.of(call)
        facts[formula(call)] = (
            shown(value.amount, LEAVES.get(call.function).kind)
            if isinstance(value, Known)
            else value.cause.removeprefix(f"{formula(call)}: ")
        )
    return facts


def _complete_until(expression: Expression, values: _Values) -> datetime | None:
    """c of the freshness leaf that is furthest behind."""
    found = [value.complete_until for call in leaf_calls(expression) if isinstance(value := values.of(call), Known)]
    return min((c for c in found if c is not None), default=None)
