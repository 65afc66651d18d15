"""across_partitions(this, key...): the rows beyond the first of each key that is in more than one partition of the whole table.

Each partition by itself is looked at by `repeated`. Where at least every third row repeats a key of another partition, partitions
are snapshots of one thing: then a key is unique within its partition, and the test says so and is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from fractions import Fraction

from lakehub.kernel.outcome import Outcome
from quality.domain.language.function_support.arguments import check_argument_count, column_names, table_argument
from quality.domain.language.measures import Answer, Ask, Measure, Reach
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Failed, Known, Value, error, no_data
from quality.domain.value_types import ValueType

SNAPSHOTS_FROM = Fraction(1, 3)
SEARCH_CADENCE = timedelta(days=1)
"""So often the whole table is searched, and no sooner again where it failed."""


class AcrossPartitionsFunction:
    signature = "across_partitions(this, column, ...)"
    value_type = ValueType.COUNT
    table_arguments = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 2, 33, self.signature)
        key = column_names(args[1:], self.signature)
        return (Ask(table_argument(args[0], self.signature), Measure("across_partitions", key), Reach.EACH_PARTITION),)

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        (answer,) = answers
        if not answer or (isinstance(answer, Mapping) and not answer["keyed"]):
            return no_data("there are no rows with a key")
        if not isinstance(answer, Mapping):
            return error(f"the table was searched and answered {answer!r}")
        if Fraction(answer["repeated"], answer["keyed"]) >= SNAPSHOTS_FROM:
            return Failed(
                Outcome.SKIPPED,
                f"{answer['repeated']:,} of {answer['keyed']:,} rows repeat a key of another partition, so that each partition is "
                "taken for a snapshot. If it is one, set the override unique_within to partition; if it is none, test "
                "repeated(this, ...) == 0 with partition=whole",
            )
        return Known(Fraction(answer["repeated"]))


ACROSS_PARTITIONS = AcrossPartitionsFunction()
