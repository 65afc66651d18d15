"""distinct(table, column, ...): how many different keys there are. A null is a value like any other."""

from __future__ import annotations

from collections.abc import Sequence

from quality.domain.language.function_support.arguments import check_argument_count, column_names, table_argument
from quality.domain.language.measures import Answer, Ask, Measure
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Value
from quality.domain.value_types import ValueType


class DistinctFunction:
    signature = "distinct(table, column, ...)"
    value_type = ValueType.COUNT
    table_arguments = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 2, 33, self.signature)
        return (
            Ask(table_argument(args[0], self.signature), Measure("distinct", column_names(args[1:], self.signature))),
        )

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        (keys,) = answers
        assert isinstance(keys, int)
        return moment.count(keys, rows=keys)


DISTINCT = DistinctFunction()
