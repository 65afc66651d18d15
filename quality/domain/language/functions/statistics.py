"""sum, mean, minimum and maximum of a column of numbers; nulls are left out, and of nulls alone there is no data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from quality.domain.language.function_support.arguments import check_argument_count, column_argument
from quality.domain.language.measures import Answer, Ask, Measure
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Known, Value, error, no_data
from quality.domain.value_types import ValueType


@dataclass(frozen=True)
class StatisticFunction:
    name: str
    measures: tuple[str, ...]
    value_type = ValueType.NUMBER
    table_arguments = 1

    @property
    def signature(self) -> str:
        return f"{self.name}(table.column)"

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 1, 1, self.signature)
        table, column = column_argument(args[0], self.signature)
        return tuple(Ask(table, Measure(measure, (column,))) for measure in self.measures)

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        amount, *count = answers
        if amount is None or 0 in count:
            return no_data("there are no values")
        if isinstance(amount, bool) or not isinstance(amount, int | float | Decimal):
            return error(f"{self.name} wants a column of numbers, not of {type(amount).__name__}")
        if not math.isfinite(amount):
            return error(f"the {self.name} is {amount}")
        (filled,) = count or (1,)
        assert isinstance(filled, int)
        return Known(Fraction(amount) / filled)


SUM = StatisticFunction("sum", ("sum",))
MEAN = StatisticFunction("mean", ("sum", "filled"))
MINIMUM = StatisticFunction("minimum", ("minimum",))
MAXIMUM = StatisticFunction("maximum", ("maximum",))
