"""delay(this): how long after the end of the partition its rows had come, by the commits; zero while it was going on.

What came later than the tested partition is old now is not counted, of it and of those before it: so they compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves import BadArguments
from quality.domain.expression.leaves.arguments import a_table, exactly
from quality.domain.expression.measures import Answer, Ask, Measure
from quality.domain.expression.nodes import Argument
from quality.domain.expression.scope import THIS
from quality.domain.expression.values import Known, Moment, Value, no_data

DELAY_MEASURE = Measure("delay")


class Delay:
    signature = "delay(this)"
    kind = Kind.DURATION
    tables = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 1, 1, self.signature)
        table = a_table(args[0], self.signature)
        if table.dataset != THIS or table.data_center:
            raise BadArguments(
                f"Only the commits of the copy that the test runs on are known: {self.signature}.", args[0]
            )
        return (Ask(table, DELAY_MEASURE),)

    def value(self, answers: Sequence[Answer], moment: Moment) -> Value:
        (seconds,) = answers
        if not isinstance(seconds, float):
            return no_data("no commit of it is known by then")
        return Known(timedelta(seconds=seconds))


DELAY = Delay()
