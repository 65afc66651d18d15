"""outside(table.column, low, high): how many rows have a value below `low` or above `high`; a null is neither."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from fractions import Fraction

from quality.domain.language.function_support.arguments import (
    BadArguments,
    check_argument_count,
    column_argument,
    exact_number,
    literal_argument,
)
from quality.domain.language.function_support.row_counts import RowCountFunction
from quality.domain.language.measures import ROWS, Ask, Measure, Scalar
from quality.domain.language.tree.literals import format_literal
from quality.domain.language.tree.nodes import Argument, Literal
from quality.domain.value_types import ValueType

_BOUND_WORDS = "a number, or a date or time in single quotes,"


class OutsideFunction(RowCountFunction):
    signature = "outside(table.column, low, high)"

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 3, 3, self.signature)
        table, column = column_argument(args[0], self.signature)
        low, high = (
            literal_argument(arg, (ValueType.NUMBER, ValueType.RATIO, ValueType.TEXT), _BOUND_WORDS, self.signature)
            for arg in args[1:]
        )
        bounds = _parse_bound(low, self.signature), _parse_bound(high, self.signature)
        if (low.value_type is ValueType.TEXT) is not (high.value_type is ValueType.TEXT):
            raise BadArguments("Both bounds are numbers, or both are dates.", high)
        if _sort_key(bounds[0]) > _sort_key(bounds[1]):
            shown = [format_literal(bound.value, bound.value_type) for bound in (low, high)]
            raise BadArguments(f"Nothing lies from {shown[0]} up to {shown[1]}: the lower bound is first.", low)
        return Ask(table, Measure("outside", (column,), values=bounds)), Ask(table, ROWS)


def _parse_bound(literal: Literal, signature: str) -> Scalar:
    """A number, a date, or an aware time: one without a zone is UTC."""
    if not isinstance(literal.value, str):
        return exact_number(literal)
    try:
        if len(literal.value) == len("2026-11-16"):
            return date.fromisoformat(literal.value)
        instant = datetime.fromisoformat(literal.value)
    except ValueError:
        raise BadArguments(
            f"A text such as '{literal.value}' has no range; {_BOUND_WORDS} is wanted.", literal
        ) from None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _sort_key(bound: Scalar) -> Fraction:
    """For the order of two bounds of one kind."""
    if isinstance(bound, datetime):
        return Fraction(bound.timestamp())
    if isinstance(bound, date):
        return Fraction(datetime(bound.year, bound.month, bound.day, tzinfo=UTC).timestamp())
    assert bound is not None
    return Fraction(bound)


OUTSIDE = OutsideFunction()
