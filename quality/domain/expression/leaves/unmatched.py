"""unmatched(table.column, other.column): rows whose value is not in the other table. A null names nothing: it is not counted."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves.arguments import a_column, exactly
from quality.domain.expression.measures import ROWS, Answer, Ask, Measure, Reach
from quality.domain.expression.nodes import Argument
from quality.domain.expression.values import Known, Moment, Value, no_data


class Unmatched:
    signature = "unmatched(table.column, other.column)"
    kind = Kind.COUNT
    tables = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 2, 2, self.signature)
        table, column = a_column(args[0], self.signature)
        other, other_column = a_column(args[1], self.signature)
        lookup = Measure("unmatched", (column,), other, (other_column,))
        return Ask(table, lookup), Ask(table, ROWS), Ask(other, ROWS, Reach.TABLE)

    def value(self, answers: Sequence[Answer], moment: Moment) -> Value:
        unmatched, rows, other_rows = answers
        assert isinstance(unmatched, int)
        if not rows:
            return no_data("there are no rows")
        return Known(Fraction(unmatched)) if other_rows else no_data("the table that is looked into has no rows")


UNMATCHED = Unmatched()
