"""drift(table.column, table[-7d].column): how far two distributions are apart, from 0% (the same) to 100% (nothing in common)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from quality.domain.drift import distance
from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves.arguments import a_column, exactly
from quality.domain.expression.measures import Answer, Ask, Measure
from quality.domain.expression.nodes import Argument
from quality.domain.expression.values import Known, Moment, Value, no_data


class Drift:
    signature = "drift(table.column, table[-7d].column)"
    kind = Kind.RATIO
    tables = 2

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 2, 2, self.signature)
        columns = [a_column(arg, self.signature) for arg in args]
        return tuple(Ask(table, Measure("frequencies", (column,))) for table, column in columns)

    def value(self, answers: Sequence[Answer], moment: Moment) -> Value:
        now, then = (cast("Mapping[str | None, int]", counts) for counts in answers)
        if not sum(now.values()):
            return no_data("there are no rows")
        return Known(distance(now, then)) if sum(then.values()) else no_data("there are no rows to compare with")


DRIFT = Drift()
