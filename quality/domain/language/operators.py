"""The operators: one line each in OPERATORS adds one. They see amounts only; a failed argument never reaches them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import Any

from quality.domain.language.tree.nodes import Amount, Literal, Node
from quality.domain.value_types import ValueType, ValueTypeError


class EmptyDenominator(ArithmeticError):
    """Division by zero: nothing to compare with."""


_TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class Operator:
    """`symbol` and `precedence` are for the readable form; without a symbol it is written as a function."""

    name: str
    arity: tuple[int, int]
    result_type: Callable[[Sequence[ValueType], Sequence[Node]], ValueType]
    apply: Callable[..., Amount]
    symbol: str = ""
    precedence: int = 0


def _common_type(kinds: Sequence[ValueType], verb: str) -> ValueType:
    first, *others = kinds
    if ValueType.BOOLEAN in kinds:
        raise ValueTypeError(f"true and false cannot be {verb}.")
    if ValueType.TEXT in kinds:
        raise ValueTypeError(f"A text cannot be {verb}.")
    if all(kind is first for kind in others):
        return first
    if all(kind.is_numeric for kind in kinds):
        return ValueType.NUMBER
    if not {ValueType.DURATION, ValueType.COUNT} & set(kinds):
        return ValueType.RATIO
    raise ValueTypeError(f"A {first} and a {next(kind for kind in others if kind is not first)} cannot be {verb}.")


def _sum_type(kinds: Sequence[ValueType], args: Sequence[Node]) -> ValueType:
    return _common_type(kinds, "added or subtracted")


def _choice_type(kinds: Sequence[ValueType], args: Sequence[Node]) -> ValueType:
    return _common_type(kinds, "chosen from")


def _mean_type(kinds: Sequence[ValueType], args: Sequence[Node]) -> ValueType:
    """The mean of counts may be half a row."""
    kind = _common_type(kinds, "averaged")
    return ValueType.NUMBER if kind is ValueType.COUNT else kind


def _product_type(kinds: Sequence[ValueType], args: Sequence[Node]) -> ValueType:
    left, right = kinds
    if {ValueType.BOOLEAN, ValueType.TEXT} & set(kinds) or (left is ValueType.DURATION and right is ValueType.DURATION):
        raise ValueTypeError(f"A {left} times a {right} has no meaning.")
    if ValueType.DURATION in kinds:
        return ValueType.DURATION
    return ValueType.RATIO if left is right is ValueType.RATIO else ValueType.NUMBER


def _quotient_type(kinds: Sequence[ValueType], args: Sequence[Node]) -> ValueType:
    left, right = kinds
    if {ValueType.BOOLEAN, ValueType.TEXT} & set(kinds) or (
        right is ValueType.DURATION and left is not ValueType.DURATION
    ):
        raise ValueTypeError(f"A {left} divided by a {right} has no meaning.")
    if left is ValueType.DURATION:
        return ValueType.RATIO if right is ValueType.DURATION else ValueType.DURATION
    if left is ValueType.RATIO or left is right is ValueType.COUNT:
        return ValueType.RATIO
    return ValueType.NUMBER


def _unchanged_type(kinds: Sequence[ValueType], args: Sequence[Node]) -> ValueType:
    return _common_type([*kinds, kinds[0]], "used here")


def _comparison_type(kinds: Sequence[ValueType], args: Sequence[Node]) -> ValueType:
    left, right = kinds
    if ValueType.TEXT in kinds:
        raise ValueTypeError(
            "A text is not compared; rows with a text are counted, as in unexpected(this.carrier, 'AA') == 0."
        )
    for kind, other, arg in ((left, right, args[1]), (right, left, args[0])):
        if kind is ValueType.RATIO and other is ValueType.COUNT:
            raise ValueTypeError(
                "A count is compared with a ratio; divide it first, as in rows(this) / rows(upstream)."
            )
        if kind is ValueType.RATIO and other is ValueType.NUMBER and isinstance(arg, Literal):
            raise ValueTypeError(
                "A ratio is compared with a plain number; write the threshold in percent, as in 99.9%."
            )
        if kind is ValueType.DURATION and other is not ValueType.DURATION:
            raise ValueTypeError(f"A duration is compared with a {other}; write it with its unit, as in 2h or 30m.")
    if ValueType.BOOLEAN in kinds:
        raise ValueTypeError("true and false are joined with and, or, not; they are not compared.")
    return ValueType.BOOLEAN


def _logic_type(kinds: Sequence[ValueType], args: Sequence[Node]) -> ValueType:
    for kind in kinds:
        if kind is not ValueType.BOOLEAN:
            raise ValueTypeError(f"and, or, not join comparisons; this is a {kind}.")
    return ValueType.BOOLEAN


def _divide(left: Any, right: Any) -> Amount:
    if not right:
        raise EmptyDenominator("The denominator is 0.")
    if isinstance(right, timedelta):
        return Fraction(left // _TICK, right // _TICK)
    return _times(left, 1 / right)


def _times(left: Any, right: Any) -> Amount:
    """A duration is multiplied by the numerator and the denominator: timedelta knows no fractions."""
    if isinstance(right, timedelta):
        left, right = right, left
    product: Amount = left * right.numerator / right.denominator if isinstance(left, timedelta) else left * right
    return product


OPERATORS: dict[str, Operator] = {
    entry.name: entry
    for entry in (
        Operator("or", (2, 2), _logic_type, lambda a, b: a or b, "or", 1),
        Operator("and", (2, 2), _logic_type, lambda a, b: a and b, "and", 2),
        Operator("not", (1, 1), _logic_type, operator.not_, "not", 3),
        Operator("lt", (2, 2), _comparison_type, operator.lt, "<", 4),
        Operator("le", (2, 2), _comparison_type, operator.le, "<=", 4),
        Operator("gt", (2, 2), _comparison_type, operator.gt, ">", 4),
        Operator("ge", (2, 2), _comparison_type, operator.ge, ">=", 4),
        Operator("eq", (2, 2), _comparison_type, operator.eq, "==", 4),
        Operator("ne", (2, 2), _comparison_type, operator.ne, "!=", 4),
        Operator("add", (2, 2), _sum_type, operator.add, "+", 5),
        Operator("sub", (2, 2), _sum_type, operator.sub, "-", 5),
        Operator("mul", (2, 2), _product_type, _times, "*", 6),
        Operator("div", (2, 2), _quotient_type, _divide, "/", 6),
        Operator("neg", (1, 1), _unchanged_type, operator.neg, "-", 7),
        Operator("abs", (1, 1), _unchanged_type, abs),
        Operator("min", (2, 8), _choice_type, min),
        Operator("max", (2, 8), _choice_type, max),
        Operator(
            "average", (1, 60), _mean_type, lambda *values: _times(sum(values[1:], values[0]), Fraction(1, len(values)))
        ),
    )
}
"""In the order of their strength; `neg` and `not` stand before their one argument."""

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
BINARY = {entry.symbol: entry.name for entry in OPERATORS.values() if entry.symbol and entry.arity == (2, 2)}
