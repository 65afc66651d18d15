"""rows(table): how many rows there are. None at all is NO_DATA: an empty partition never passes a test."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves.arguments import a_table, exactly
from quality.domain.expression.measures import ROWS, Answer, Ask
from quality.domain.expression.nodes import Argument
from quality.domain.expression.values import Known, Moment, Value, no_data


class Rows:
    signature = "rows(table)"
    kind = Kind.COUNT
    tables = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 1, 1, self.signature)
        return (Ask(a_table(args[0], self.signature), ROWS),)

    def value(self, answers: Sequence[Answer], moment: Moment) -> Value:
        (rows,) = answers
        assert isinstance(rows, int)
        return Known(Fraction(rows)) if rows else no_data("there are no rows")


ROWS_LEAF = Rows()
