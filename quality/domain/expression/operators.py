"""The operators: one line each in OPERATORS adds one. They see amounts only; a failed argument never reaches them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from typing import Any

from quality.domain.expression.kinds import Kind, KindError
from quality.domain.expression.nodes import Amount, Literal, Node


class EmptyDenominator(ArithmeticError):
    """Division by zero: nothing to compare with."""


_TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class Operator:
    """`symbol` and `precedence` are for the readable form; without a symbol it is written as a function."""

    name: str
    arity: tuple[int, int]
    kind: Callable[[Sequence[Kind], Sequence[Node]], Kind]
    apply: Callable[..., Amount]
    symbol: str = ""
    precedence: int = 0


def _same(kinds: Sequence[Kind], verb: str) -> Kind:
    first, *others = kinds
    if Kind.BOOLEAN in kinds:
        raise KindError(f"true and false cannot be {verb}.")
    if Kind.TEXT in kinds:
        raise KindError(f"A text cannot be {verb}.")
    if all(kind is first for kind in others):
        return first
    if all(kind.is_numeric for kind in kinds):
        return Kind.NUMBER
    if not {Kind.DURATION, Kind.COUNT} & set(kinds):
        return Kind.RATIO
    raise KindError(f"A {first} and a {next(kind for kind in others if kind is not first)} cannot be {verb}.")


def _sum(kinds: Sequence[Kind], args: Sequence[Node]) -> Kind:
    return _same(kinds, "added or subtracted")


def _choice(kinds: Sequence[Kind], args: Sequence[Node]) -> Kind:
    return _same(kinds, "chosen from")


def _mean(kinds: Sequence[Kind], args: Sequence[Node]) -> Kind:
    """The mean of counts may be half a row."""
    kind = _same(kinds, "averaged")
    return Kind.NUMBER if kind is Kind.COUNT else kind


def _product(kinds: Sequence[Kind], args: Sequence[Node]) -> Kind:
    left, right = kinds
    if {Kind.BOOLEAN, Kind.TEXT} & set(kinds) or (left is Kind.DURATION and right is Kind.DURATION):
        raise KindError(f"A {left} times a {right} has no meaning.")
    if Kind.DURATION in kinds:
        return Kind.DURATION
    return Kind.RATIO if left is right is Kind.RATIO else Kind.NUMBER


def _quotient(kinds: Sequence[Kind], args: Sequence[Node]) -> Kind:
    left, right = kinds
    if {Kind.BOOLEAN, Kind.TEXT} & set(kinds) or (right is Kind.DURATION and left is not Kind.DURATION):
        raise KindError(f"A {left} divided by a {right} has no meaning.")
    if left is Kind.DURATION:
        return Kind.RATIO if right is Kind.DURATION else Kind.DURATION
    if left is Kind.RATIO or left is right is Kind.COUNT:
        return Kind.RATIO
    return Kind.NUMBER


def _kept(kinds: Sequence[Kind], args: Sequence[Node]) -> Kind:
    return _same([*kinds, kinds[0]], "used here")


def _comparison(kinds: Sequence[Kind], args: Sequence[Node]) -> Kind:
    left, right = kinds
    if Kind.TEXT in kinds:
        raise KindError(
            "A text is not compared; rows with a text are counted, as in unexpected(this.carrier, 'AA') == 0."
        )
    for kind, other, arg in ((left, right, args[1]), (right, left, args[0])):
        if kind is Kind.RATIO and other is Kind.COUNT:
            raise KindError("A count is compared with a ratio; divide it first, as in rows(this) / rows(upstream).")
        if kind is Kind.RATIO and other is Kind.NUMBER and isinstance(arg, Literal):
            raise KindError("A ratio is compared with a plain number; write the threshold in percent, as in 99.9%.")
        if kind is Kind.DURATION and other is not Kind.DURATION:
            raise KindError(f"A duration is compared with a {other}; write it with its unit, as in 2h or 30m.")
    if Kind.BOOLEAN in kinds:
        raise KindError("true and false are joined with and, or, not; they are not compared.")
    return Kind.BOOLEAN


def _logic(kinds: Sequence[Kind], args: Sequence[Node]) -> Kind:
    for kind in kinds:
        if kind is not Kind.BOOLEAN:
            raise KindError(f"and, or, not join comparisons; this is a {kind}.")
    return Kind.BOOLEAN


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
        Operator("or", (2, 2), _logic, lambda a, b: a or b, "or", 1),
        Operator("and", (2, 2), _logic, lambda a, b: a and b, "and", 2),
        Operator("not", (1, 1), _logic, operator.not_, "not", 3),
        Operator("lt", (2, 2), _comparison, operator.lt, "<", 4),
        Operator("le", (2, 2), _comparison, operator.le, "<=", 4),
        Operator("gt", (2, 2), _comparison, operator.gt, ">", 4),
        Operator("ge", (2, 2), _comparison, operator.ge, ">=", 4),
        Operator("eq", (2, 2), _comparison, operator.eq, "==", 4),
        Operator("ne", (2, 2), _comparison, operator.ne, "!=", 4),
        Operator("add", (2, 2), _sum, operator.add, "+", 5),
        Operator("sub", (2, 2), _sum, operator.sub, "-", 5),
        Operator("mul", (2, 2), _product, _times, "*", 6),
        Operator("div", (2, 2), _quotient, _divide, "/", 6),
        Operator("neg", (1, 1), _kept, operator.neg, "-", 7),
        Operator("abs", (1, 1), _kept, abs),
        Operator("min", (2, 8), _choice, min),
        Operator("max", (2, 8), _choice, max),
        Operator(
            "average", (1, 60), _mean, lambda *values: _times(sum(values[1:], values[0]), Fraction(1, len(values)))
        ),
    )
}
"""In the order of their strength; `neg` and `not` stand before their one argument."""

COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
BINARY = {entry.symbol: entry.name for entry in OPERATORS.values() if entry.symbol and entry.arity == (2, 2)}
