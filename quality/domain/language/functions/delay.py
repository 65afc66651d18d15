"""delay(this): how long after the end of the partition its rows had come, by the commits; zero while it was going on.

What came later than the tested partition is old now is not counted, of it and of those before it: so they compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from quality.domain.language.function_support.arguments import BadArguments, check_argument_count, table_argument
from quality.domain.language.measures import Answer, Ask, Measure
from quality.domain.language.scope import THIS
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Known, Value, no_data
from quality.domain.value_types import ValueType

DELAY_MEASURE = Measure("delay")


class DelayFunction:
    signature = "delay(this)"
    value_type = ValueType.DURATION
    table_arguments = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 1, 1, self.signature)
        table = table_argument(args[0], self.signature)
        if table.dataset != THIS or table.data_center:
            raise BadArguments(
                f"Only the commits of the copy that the test runs on are known: {self.signature}.", args[0]
            )
        return (Ask(table, DELAY_MEASURE),)

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        (seconds,) = answers
        if not isinstance(seconds, float):
            return no_data("no commit of it is known by then")
        return Known(timedelta(seconds=seconds))


DELAY = DelayFunction()
