"""nulls(table.column): how many rows have no value in a column."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves.arguments import a_column, exactly
from quality.domain.expression.measures import ROWS, Answer, Ask, Measure
from quality.domain.expression.nodes import Argument
from quality.domain.expression.values import Known, Moment, Value, no_data


class Nulls:
    signature = "nulls(table.column)"
    kind = Kind.COUNT

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 1, 1, self.signature)
        table, column = a_column(args[0], self.signature)
        return Ask(table, Measure("nulls", (column,))), Ask(table, ROWS)

    def value(self, answers: Sequence[Answer], moment: Moment) -> Value:
        nulls, rows = answers
        assert isinstance(nulls, int)
        return Known(Fraction(nulls)) if rows else no_data("there are no rows")


NULLS = Nulls()
