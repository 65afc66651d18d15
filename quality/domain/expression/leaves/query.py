"""query(table, 'SELECT ...'): the one number of a query that a person wrote; `this` in it is the partition of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves import BadArguments
from quality.domain.expression.leaves.arguments import a_literal, a_table, exactly
from quality.domain.expression.measures import ROWS, Answer, Ask, Measure
from quality.domain.expression.nodes import Argument
from quality.domain.expression.values import Known, Moment, Value, error, no_data
from quality.domain.queries import BadQuery, understood


class Query:
    signature = "query(table, 'SELECT ...')"
    kind = Kind.NUMBER
    tables = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 2, 2, self.signature)
        table = a_table(args[0], self.signature)
        sql = a_literal(args[1], (Kind.TEXT,), "one SELECT in single quotes", self.signature).value
        assert isinstance(sql, str)
        try:
            understood(sql)
        except BadQuery as bad:
            raise BadArguments(str(bad), args[1]) from None
        return Ask(table, Measure("query", values=(sql,))), Ask(table, ROWS)

    def value(self, answers: Sequence[Answer], moment: Moment) -> Value:
        number, rows = answers
        if not rows:
            return no_data("there are no rows")
        if number is None:
            return no_data("the query answers nothing")
        if not isinstance(number, int | float | Decimal):
            return error(f"the query answers {type(number).__name__}, and a number is wanted")
        return Known(Fraction(number)) if math.isfinite(number) else error(f"the query answers {number}")


QUERY = Query()
