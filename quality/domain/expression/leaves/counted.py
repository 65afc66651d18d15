"""Leaves that count the rows of which something is true: over no rows at all there is nothing to count."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from quality.domain.expression.kinds import Kind
from quality.domain.expression.measures import Answer
from quality.domain.expression.values import Known, Moment, Value, no_data


class Counted:
    """Asks for its own measure first, and for the rows."""

    kind = Kind.COUNT
    tables = 1

    def value(self, answers: Sequence[Answer], moment: Moment) -> Value:
        found, rows = answers
        assert isinstance(found, int)
        return Known(Fraction(found)) if rows else no_data("there are no rows")
