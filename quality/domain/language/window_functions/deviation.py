"""deviation(x, 8w): how unusual x is, in spreads from what it was on comparable days of the last 8 weeks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from fractions import Fraction
from functools import partial

from lakehub.kernel.partitions import Grain
from quality.domain.language.function_support.arguments import BadArguments
from quality.domain.language.tree.literals import display_amount
from quality.domain.language.tree.nodes import Amount, Literal
from quality.domain.language.values import EvaluationContext, Failed, Known, Value, no_data
from quality.domain.language.window_functions import PastValue
from quality.domain.statistics.anomaly import (
    MIN_POINTS,
    Point,
    TooFewPoints,
    baseline_facts,
    compute_baseline,
    window_shifts,
)
from quality.domain.value_types import ValueType

MIN_WINDOW, MAX_WINDOW = timedelta(weeks=1), timedelta(weeks=160)


class DeviationFunction:
    signature = "deviation(x, 8w)"
    value_type = ValueType.NUMBER

    def shifts(self, kind: ValueType, args: Sequence[Literal]) -> tuple[timedelta, ...]:
        return window_shifts(self._window(kind, args))

    def min_history(self, kind: ValueType, args: Sequence[Literal], grain: Grain) -> timedelta:
        return -window_shifts(self._window(kind, args), grain)[:MIN_POINTS][-1]

    def _window(self, kind: ValueType, args: Sequence[Literal]) -> timedelta:
        if kind in (ValueType.BOOLEAN, ValueType.TEXT):
            raise BadArguments(f"What deviates is a number, a ratio or a duration, not a {kind}: {self.signature}.")
        if len(args) != 1 or not isinstance(window := args[0].value, timedelta):
            raise BadArguments(f"It takes a value and how far back it looks, as in {self.signature}.")
        if not MIN_WINDOW <= window <= MAX_WINDOW:
            raise BadArguments(f"It looks back one week at least and {MAX_WINDOW.days // 7} weeks at most.", args[0])
        return window

    def value(self, kind: ValueType, present: Known, past: Sequence[PastValue], moment: EvaluationContext) -> Value:
        baseline = compute_baseline(
            _number(present.amount),
            moment.partition.start,
            [_point(past_value) for past_value in past],
            grain=moment.grain,
            zone=moment.zone,
            excluded=moment.excluded_ranges,
            kind=kind,
        )
        if isinstance(baseline, TooFewPoints):
            return no_data(str(baseline))
        return Known(
            Fraction(baseline.score), facts=tuple(baseline_facts(baseline, partial(_display_value, kind)).items())
        )


def _point(past: PastValue) -> Point:
    if isinstance(past.value, Failed):
        return Point(past.partition.start, None, past.value.cause)
    return Point(past.partition.start, _number(past.value.amount))


def _number(amount: Amount) -> float:
    """Durations in seconds."""
    assert not isinstance(amount, str)
    return amount.total_seconds() if isinstance(amount, timedelta) else float(amount)


def _display_value(kind: ValueType, number: float) -> str:
    return display_amount(timedelta(seconds=number) if kind is ValueType.DURATION else Fraction(number), kind)


DEVIATION = DeviationFunction()
