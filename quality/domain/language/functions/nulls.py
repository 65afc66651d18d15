"""nulls(table.column): how many rows have no value in a column."""

from __future__ import annotations

from collections.abc import Sequence

from quality.domain.language.function_support.arguments import check_argument_count, column_argument
from quality.domain.language.function_support.row_counts import RowCountFunction
from quality.domain.language.measures import ROWS, Ask, Measure
from quality.domain.language.tree.nodes import Argument


class NullsFunction(RowCountFunction):
    signature = "nulls(table.column)"

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 1, 1, self.signature)
        table, column = column_argument(args[0], self.signature)
        return Ask(table, Measure("nulls", (column,))), Ask(table, ROWS)


NULLS = NullsFunction()
