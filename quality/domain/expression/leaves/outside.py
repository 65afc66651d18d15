"""outside(table.column, low, high): how many rows have a value below `low` or above `high`; a null is neither."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from fractions import Fraction

from quality.domain.expression.amounts import literal_text
from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves import BadArguments
from quality.domain.expression.leaves.arguments import a_column, a_literal, exact, exactly
from quality.domain.expression.leaves.counted import Counted
from quality.domain.expression.measures import ROWS, Ask, Measure, Scalar
from quality.domain.expression.nodes import Argument, Literal

_BOUND = "a number, or a date or time in single quotes,"


class Outside(Counted):
    signature = "outside(table.column, low, high)"

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 3, 3, self.signature)
        table, column = a_column(args[0], self.signature)
        low, high = (a_literal(arg, (Kind.NUMBER, Kind.RATIO, Kind.TEXT), _BOUND, self.signature) for arg in args[1:])
        bounds = _bound(low, self.signature), _bound(high, self.signature)
        if (low.kind is Kind.TEXT) is not (high.kind is Kind.TEXT):
            raise BadArguments("Both bounds are numbers, or both are dates.", high)
        if _place(bounds[0]) > _place(bounds[1]):
            shown = [literal_text(bound.value, bound.kind) for bound in (low, high)]
            raise BadArguments(f"Nothing lies from {shown[0]} up to {shown[1]}: the lower bound is first.", low)
        return Ask(table, Measure("outside", (column,), values=bounds)), Ask(table, ROWS)


def _bound(literal: Literal, signature: str) -> Scalar:
    """A number, a date, or an aware time: one without a zone is UTC."""
    if not isinstance(literal.value, str):
        return exact(literal)
    try:
        if len(literal.value) == len("2026-11-16"):
            return date.fromisoformat(literal.value)
        instant = datetime.fromisoformat(literal.value)
    except ValueError:
        raise BadArguments(f"A text such as '{literal.value}' has no range; {_BOUND} is wanted.", literal) from None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _place(bound: Scalar) -> Fraction:
    """For the order of two bounds of one kind."""
    if isinstance(bound, datetime):
        return Fraction(bound.timestamp())
    if isinstance(bound, date):
        return Fraction(datetime(bound.year, bound.month, bound.day, tzinfo=UTC).timestamp())
    assert bound is not None
    return Fraction(bound)


OUTSIDE = Outside()
