"""null_keys(table.column): rows without a value in a column of the key. They have no key, and no test of keys looks at them."""

from __future__ import annotations

from collections.abc import Sequence

from quality.domain.language.function_support.arguments import check_argument_count, column_argument
from quality.domain.language.measures import ROWS, Answer, Ask, Measure
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Value
from quality.domain.value_types import ValueType


class NullKeysFunction:
    signature = "null_keys(table.column)"
    value_type = ValueType.COUNT
    table_arguments = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 1, 1, self.signature)
        table, column = column_argument(args[0], self.signature)
        return Ask(table, Measure("nulls", (column,))), Ask(table, ROWS)

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        nulls, rows = answers
        assert isinstance(nulls, int)
        assert isinstance(rows, int)
        return moment.count(nulls, rows=rows)


NULL_KEYS = NullKeysFunction()
