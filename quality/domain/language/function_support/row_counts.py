"""Leaves that count the rows of which something is true: over no rows at all there is nothing to count."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from quality.domain.language.measures import Answer
from quality.domain.language.values import EvaluationContext, Known, Value, no_data
from quality.domain.value_types import ValueType


class RowCountFunction:
    """Asks for its own measure first, and for the rows."""

    value_type = ValueType.COUNT
    table_arguments = 1

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        count, rows = answers
        assert isinstance(count, int)
        return Known(Fraction(count)) if rows else no_data("there are no rows")
