"""sampled(table, upstream): the share of the rows sampled upstream whose key is here. For upstreams outside the lake.

`sampled(this, upstream, 1000, origin, day)` says how many are sampled and by which key; else 1,000, by the primary key.
"""

from __future__ import annotations

from collections.abc import Sequence

from quality.domain.language.function_support.arguments import (
    BadArguments,
    check_argument_count,
    column_names,
    compared_tables,
    exact_number,
    literal_argument,
)
from quality.domain.language.function_support.matching_share import matching_share
from quality.domain.language.measures import ROWS, Answer, Ask, Measure
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Value
from quality.domain.value_types import ValueType

DEFAULT_ROWS, MAX_ROWS = 1_000, 100_000


class SampledFunction:
    signature = "sampled(table, upstream[, rows[, key, ...]])"
    value_type = ValueType.RATIO
    table_arguments = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 2, 35, self.signature)
        table, upstream = compared_tables(args, self.signature)
        rows = _sample_size(args[2], self.signature) if len(args) > 2 else DEFAULT_ROWS
        key = column_names(args[3:], self.signature)
        return Ask(table, Measure("sampled", key, upstream, key, (rows,))), Ask(table, ROWS)

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        return matching_share(answers, moment)


def _sample_size(arg: Argument, signature: str) -> int:
    size = exact_number(literal_argument(arg, (ValueType.NUMBER,), "a number of rows", signature))
    if not isinstance(size, int) or not 0 < size <= MAX_ROWS:
        raise BadArguments(f"A sample has 1 to {MAX_ROWS:,} rows, not {size}.", arg)
    return size


SAMPLED = SampledFunction()
