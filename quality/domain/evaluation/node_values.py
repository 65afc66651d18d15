"""The value of each node of an expression, worked out once, from the leaves up. A failed leaf is a value like the others."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction
from functools import lru_cache

from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Outcome
from lakehub.kernel.partitions import shifted_partition
from quality.domain.language import Call, Literal, Node, asks_of, formula
from quality.domain.language.functions import FUNCTIONS
from quality.domain.language.measures import Answer, Ask, Reach
from quality.domain.language.operators import OPERATORS, EmptyDenominator
from quality.domain.language.tree.nodes import NO_SHIFT, Name
from quality.domain.language.type_checker import shifts_of, value_type_of
from quality.domain.language.values import EvaluationContext, Failed, Known, Value, error, no_data
from quality.domain.language.window_functions import WINDOW_FUNCTIONS, PastValue

_MAX_MAGNITUDE = Fraction(10) ** 300
"""Some room is left to the greatest float: a share is shown in percent."""
_asks_of = lru_cache(maxsize=8192)(asks_of)


def asks_within(node: Node, shift: timedelta = NO_SHIFT) -> tuple[Ask, ...]:
    """All that must be measured for `node`, each once, in a stable order."""
    if not isinstance(node, Call):
        return ()
    if node.function in FUNCTIONS:
        return tuple(ask.shifted(shift) for ask in _asks_of(node))
    if node.function in WINDOW_FUNCTIONS:
        shifts = (NO_SHIFT, *shifts_of(node))
        return tuple(dict.fromkeys(ask for back in shifts for ask in asks_within(node.args[0], back)))
    return tuple(dict.fromkeys(ask for arg in node.args for ask in asks_within(arg, shift)))


class NodeValues:
    """Of one partition, and of those before it that a series looks at."""

    def __init__(self, answers: Mapping[Ask, Answer | Failed], moment: EvaluationContext) -> None:
        self._answers = answers
        self.moment = moment
        self._known: dict[tuple[Node, timedelta], Value] = {}

    def of(self, node: Node, shift: timedelta = NO_SHIFT) -> Value:
        if (node, shift) not in self._known:
            self._known[node, shift] = _within_range(node, self._compute(node, shift))
        return self._known[node, shift]

    def answers_of(self, call: Call, shift: timedelta = NO_SHIFT) -> list[Answer | Failed]:
        """What was measured for a leaf."""
        return [self._answers[ask.shifted(shift)] for ask in _asks_of(call)]

    def _compute(self, node: Node, shift: timedelta) -> Value:
        if isinstance(node, Literal):
            return Known(node.value)
        if not isinstance(node, Call):
            raise TypeError(f"{node} has no value: the expression was not checked.")
        if node.function in FUNCTIONS:
            return self._function_value(node, shift)
        return (
            self._window_function_value(node)
            if node.function in WINDOW_FUNCTIONS
            else self._operator_value(node, shift)
        )

    def _function_value(self, call: Call, shift: timedelta) -> Value:
        answers: list[Answer] = []
        for answer in self.answers_of(call, shift):
            if isinstance(answer, Failed):
                return _failure_of_call(call, answer)
            answers.append(answer)
        looked_at = self.moment.shifted(shift + _own_shift(call))
        value = FUNCTIONS.get(call.function).value(answers, looked_at)
        return _failure_of_call(call, value) if isinstance(value, Failed) else value

    def _window_function_value(self, call: Call) -> Value:
        value = call.args[0]
        present = self.of(value)
        if isinstance(present, Failed):
            return present
        past = [PastValue(there, self.of(value, back)) for back in shifts_of(call) if (there := self._partition(back))]
        result = WINDOW_FUNCTIONS.get(call.function).value(value_type_of(value), present, past, self.moment)
        return _failure_of_call(call, result) if isinstance(result, Failed) else result

    def _partition(self, shift: timedelta) -> Interval | None:
        try:
            return shifted_partition(self.moment.partition, shift, self.moment.grain, self.moment.zone)
        except ValueError:
            return None

    def _operator_value(self, call: Call, shift: timedelta) -> Value:
        args = [self.of(arg, shift) for arg in call.args]
        failed = [arg for arg in args if isinstance(arg, Failed)]
        if failed:
            # An error says more than missing data does.
            return min(failed, key=lambda failure: failure.outcome is not Outcome.ERROR)
        try:
            return Known(OPERATORS[call.function].apply(*(arg.amount for arg in args if isinstance(arg, Known))))
        except EmptyDenominator:
            if _is_share_of_keys(call):
                return Failed(Outcome.SKIPPED, "there are no rows, so none is repeated")
            return no_data(f"{formula(call.args[1])} is 0, so there is nothing to compare with")
        except OverflowError:
            return error(f"{formula(call)} is too large")


def _own_shift(call: Call) -> timedelta:
    """How far back the leaf looks by itself."""
    return next((ask.table.shift for ask in _asks_of(call) if ask.reach is Reach.PARTITION), NO_SHIFT)


def _is_share_of_keys(call: Call) -> bool:
    """The repeated keys among the rows of one table, the different ones, or the rows without: of no rows there is nothing to say."""
    keys, rows = call.args
    return (
        isinstance(keys, Call)
        and isinstance(rows, Call)
        and keys.function in ("repeated", "distinct", "null_keys")
        and rows.function == "rows"
        and isinstance(keys.args[0], Name)
        and isinstance(rows.args[0], Name)
        and keys.args[0].table == rows.args[0].table
    )


def _within_range(node: Node, value: Value) -> Value:
    """What no float holds is kept and plotted by nobody."""
    if isinstance(value, Known) and isinstance(value.amount, Fraction) and abs(value.amount) > _MAX_MAGNITUDE:
        return error(f"{formula(node)} is too large" if isinstance(node, Call) else "a number is too large")
    return value


def _failure_of_call(call: Call, failed: Failed) -> Failed:
    return Failed(failed.outcome, f"{formula(call)}: {failed.cause}")
