"""unmatched(table.column, other.column): rows whose value is not in the other table. A null names nothing: it is not counted."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from quality.domain.language.function_support.arguments import check_argument_count, column_argument
from quality.domain.language.measures import ROWS, Answer, Ask, Measure, Reach
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Known, Value, no_data
from quality.domain.value_types import ValueType


class UnmatchedFunction:
    signature = "unmatched(table.column, other.column)"
    value_type = ValueType.COUNT
    table_arguments = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 2, 2, self.signature)
        table, column = column_argument(args[0], self.signature)
        other, other_column = column_argument(args[1], self.signature)
        lookup = Measure("unmatched", (column,), other, (other_column,))
        return Ask(table, lookup), Ask(table, ROWS), Ask(other, ROWS, Reach.TABLE)

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        unmatched, rows, other_rows = answers
        assert isinstance(unmatched, int)
        if not rows:
            return no_data("there are no rows")
        return Known(Fraction(unmatched)) if other_rows else no_data("the table that is looked into has no rows")


UNMATCHED = UnmatchedFunction()
