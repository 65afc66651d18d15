"""sum, mean, minimum and maximum of a column of numbers; nulls are left out, and of nulls alone there is no data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves.arguments import a_column, exactly
from quality.domain.expression.measures import Answer, Ask, Measure
from quality.domain.expression.nodes import Argument
from quality.domain.expression.values import Known, Moment, Value, error, no_data


@dataclass(frozen=True)
class Statistic:
    name: str
    measures: tuple[str, ...]
    kind = Kind.NUMBER
    tables = 1

    @property
    def signature(self) -> str:
        return f"{self.name}(table.column)"

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 1, 1, self.signature)
        table, column = a_column(args[0], self.signature)
        return tuple(Ask(table, Measure(measure, (column,))) for measure in self.measures)

    def value(self, answers: Sequence[Answer], moment: Moment) -> Value:
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


SUM = Statistic("sum", ("sum",))
MEAN = Statistic("mean", ("sum", "filled"))
MINIMUM = Statistic("minimum", ("minimum",))
MAXIMUM = Statistic("maximum", ("maximum",))
