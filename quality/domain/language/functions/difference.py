"""difference(table, other): the share of records that are missing here, have other values or are here too often. Exact, and named.

`difference(this, this@dc2, 'loaded_at, host')` leaves columns out that each data center writes for itself;
`difference(this, this@dc2, '', origin, day)` names the key, which else is the primary key. Both are looked at in the same partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from quality.domain.language.function_support.arguments import (
    check_argument_count,
    column_names,
    compared_tables,
    literal_argument,
)
from quality.domain.language.measures import Answer, Ask, Measure
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Known, Value, error, no_data
from quality.domain.value_types import ValueType


class DifferenceFunction:
    signature = "difference(table, other[, 'columns not compared'[, key, ...]])"
    value_type = ValueType.RATIO
    table_arguments = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 2, 35, self.signature)
        table, other = compared_tables(args, self.signature)
        excluded = _excluded(args[2], self.signature) if len(args) > 2 else ()
        key = column_names(args[3:], self.signature)
        return (Ask(table, Measure("difference", key, other, key, excluded)),)

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        (answer,) = answers
        if not answer or (isinstance(answer, Mapping) and not answer["keys"]):
            return no_data("there are no rows to compare")
        if not isinstance(answer, Mapping):
            return error(f"the exchange answered {answer!r}")
        return Known(Fraction(answer["differing"], answer["keys"]))


def _excluded(arg: Argument, signature: str) -> tuple[str, ...]:
    text = literal_argument(arg, (ValueType.TEXT,), "a text with the names of columns", signature).value
    return tuple(name for part in str(text).split(",") if (name := part.strip()))


DIFFERENCE = DifferenceFunction()
