"""distinct(table, column, ...): how many different keys there are. A null is a value like any other."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves.arguments import a_table, bare_columns, exactly
from quality.domain.expression.measures import Answer, Ask, Measure
from quality.domain.expression.nodes import Argument
from quality.domain.expression.values import Known, Moment, Value, no_data


class Distinct:
    signature = "distinct(table, column, ...)"
    kind = Kind.COUNT
    tables = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 2, 33, self.signature)
        return (Ask(a_table(args[0], self.signature), Measure("distinct", bare_columns(args[1:], self.signature))),)

    def value(self, answers: Sequence[Answer], moment: Moment) -> Value:
        (keys,) = answers
        assert isinstance(keys, int)
        return Known(Fraction(keys)) if keys else no_data("there are no rows")


DISTINCT = Distinct()
