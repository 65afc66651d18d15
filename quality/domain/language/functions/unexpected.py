"""unexpected(table.column, 'AA', 'UA', ...): how many rows have a value that is none of those; a null is no value."""

from __future__ import annotations

from collections.abc import Sequence

from quality.domain.language.function_support.arguments import (
    BadArguments,
    check_argument_count,
    column_argument,
    scalar_argument,
)
from quality.domain.language.function_support.row_counts import RowCountFunction
from quality.domain.language.measures import ROWS, Ask, Measure
from quality.domain.language.tree.nodes import Argument

MAX_VALUES = 200


class UnexpectedFunction(RowCountFunction):
    signature = "unexpected(table.column, 'accepted', ...)"

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 2, MAX_VALUES + 1, self.signature)
        table, column = column_argument(args[0], self.signature)
        accepted = tuple(scalar_argument(arg, self.signature) for arg in args[1:])
        for arg, value in zip(args[1:], accepted, strict=True):
            if isinstance(value, str) is not isinstance(accepted[0], str):
                raise BadArguments("The accepted values are all texts, or all numbers.", arg)
        return Ask(table, Measure("unexpected", (column,), values=accepted)), Ask(table, ROWS)


UNEXPECTED = UnexpectedFunction()
