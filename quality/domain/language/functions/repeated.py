"""repeated(table, column, ...): the rows beyond the first of each key. A row whose key has a null has no key, and repeats none."""

from __future__ import annotations

from collections.abc import Sequence

from quality.domain.language.function_support.arguments import check_argument_count, column_names, table_argument
from quality.domain.language.measures import ROWS, Answer, Ask, Measure
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Value
from quality.domain.value_types import ValueType


class RepeatedFunction:
    signature = "repeated(table, column, ...)"
    value_type = ValueType.COUNT
    table_arguments = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 2, 33, self.signature)
        table, key = table_argument(args[0], self.signature), column_names(args[1:], self.signature)
        return Ask(table, Measure("repeated", key)), Ask(table, ROWS)

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        repeated, rows = answers
        assert isinstance(repeated, int)
        assert isinstance(rows, int)
        return moment.count(repeated, rows=rows)


REPEATED = RepeatedFunction()
