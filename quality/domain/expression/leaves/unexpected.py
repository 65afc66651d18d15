"""unexpected(table.column, 'AA', 'UA', ...): how many rows have a value that is none of those; a null is no value."""

from __future__ import annotations

from collections.abc import Sequence

from quality.domain.expression.leaves import BadArguments
from quality.domain.expression.leaves.arguments import a_column, a_scalar, exactly
from quality.domain.expression.leaves.counted import Counted
from quality.domain.expression.measures import ROWS, Ask, Measure
from quality.domain.expression.nodes import Argument

MOST = 200


class Unexpected(Counted):
    signature = "unexpected(table.column, 'accepted', ...)"

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 2, MOST + 1, self.signature)
        table, column = a_column(args[0], self.signature)
        accepted = tuple(a_scalar(arg, self.signature) for arg in args[1:])
        for arg, value in zip(args[1:], accepted, strict=True):
            if isinstance(value, str) is not isinstance(accepted[0], str):
                raise BadArguments("The accepted values are all texts, or all numbers.", arg)
        return Ask(table, Measure("unexpected", (column,), values=accepted)), Ask(table, ROWS)


UNEXPECTED = Unexpected()
