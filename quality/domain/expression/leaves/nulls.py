"""nulls(table.column): how many rows have no value in a column."""

from __future__ import annotations

from collections.abc import Sequence

from quality.domain.expression.leaves.arguments import a_column, exactly
from quality.domain.expression.leaves.counted import Counted
from quality.domain.expression.measures import ROWS, Ask, Measure
from quality.domain.expression.nodes import Argument


class Nulls(Counted):
    signature = "nulls(table.column)"

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 1, 1, self.signature)
        table, column = a_column(args[0], self.signature)
        return Ask(table, Measure("nulls", (column,))), Ask(table, ROWS)


NULLS = Nulls()
