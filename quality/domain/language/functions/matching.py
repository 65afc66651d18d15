"""matching(table, other): of the keys of the other table the share that is in this one, by a Bloom filter that travels.

`matching(this, this@dc2, 10%)` looks at a tenth of the keys, the same in both; `matching(this, this@dc2, 100%, origin, day)`
names the key, which else is the primary key. Both are looked at in the same partition. The missing keys are named.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from quality.domain.language.function_support.arguments import (
    BadArguments,
    check_argument_count,
    column_names,
    compared_tables,
    exact_number,
    literal_argument,
)
from quality.domain.language.function_support.matching_share import matching_share
from quality.domain.language.measures import ROWS, Answer, Ask, Measure, Scalar
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Value
from quality.domain.value_types import ValueType


class MatchingFunction:
    signature = "matching(table, other[, share[, key, ...]])"
    value_type = ValueType.RATIO
    table_arguments = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 2, 35, self.signature)
        table, other = compared_tables(args, self.signature)
        share = _share(args[2], self.signature) if len(args) > 2 else 1
        key = column_names(args[3:], self.signature)
        return Ask(table, Measure("matching", key, other, key, (share,))), Ask(table, ROWS)

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        return matching_share(answers, moment)


def _share(arg: Argument, signature: str) -> Scalar:
    literal = literal_argument(arg, (ValueType.RATIO,), "a share such as 10%", signature)
    assert isinstance(literal.value, Fraction)
    if not 0 < literal.value <= 1:
        raise BadArguments("The share of the keys is more than 0% and at most 100%.", literal)
    return exact_number(literal)


MATCHING = MatchingFunction()
