"""rows(table): how many rows there are. Where rows are expected and there are none, that is 0; else it is NO_DATA."""

from __future__ import annotations

from collections.abc import Sequence

from quality.domain.language.function_support.arguments import check_argument_count, table_argument
from quality.domain.language.measures import ROWS, Answer, Ask
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Value
from quality.domain.value_types import ValueType


class RowsFunction:
    signature = "rows(table)"
    value_type = ValueType.COUNT
    table_arguments = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 1, 1, self.signature)
        return (Ask(table_argument(args[0], self.signature), ROWS),)

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        (rows,) = answers
        assert isinstance(rows, int)
        return moment.count(rows, rows=rows)


ROWS_FUNCTION = RowsFunction()
