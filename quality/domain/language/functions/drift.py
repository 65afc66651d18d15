"""drift(table.column, table[-7d].column): how far two distributions are apart, from 0% (the same) to 100% (nothing in common)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from quality.domain.language.function_support.arguments import check_argument_count, column_argument
from quality.domain.language.measures import Answer, Ask, Measure
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Known, Value, no_data
from quality.domain.statistics.drift import jensen_shannon_distance
from quality.domain.value_types import ValueType


class DriftFunction:
    signature = "drift(table.column, table[-7d].column)"
    value_type = ValueType.RATIO
    table_arguments = 2

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 2, 2, self.signature)
        columns = [column_argument(arg, self.signature) for arg in args]
        return tuple(Ask(table, Measure("frequencies", (column,))) for table, column in columns)

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        now, then = (cast("Mapping[str | None, int]", counts) for counts in answers)
        if not sum(now.values()):
            return no_data("there are no rows")
        return (
            Known(jensen_shannon_distance(now, then))
            if sum(then.values())
            else no_data("there are no rows to compare with")
        )


DRIFT = DriftFunction()
