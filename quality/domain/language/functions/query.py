"""query(table, 'SELECT ...'): the one number of a query that a person wrote; `this` in it is the partition of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from lakehub.user_sql import BadQuery
from quality.domain.language.function_support.arguments import (
    BadArguments,
    check_argument_count,
    literal_argument,
    table_argument,
)
from quality.domain.language.measures import ROWS, Answer, Ask, Measure
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Known, Value, error, no_data
from quality.domain.user_sql import parsed_query
from quality.domain.value_types import ValueType


class QueryFunction:
    signature = "query(table, 'SELECT ...')"
    value_type = ValueType.NUMBER
    table_arguments = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 2, 2, self.signature)
        table = table_argument(args[0], self.signature)
        sql = literal_argument(args[1], (ValueType.TEXT,), "one SELECT in single quotes", self.signature).value
        assert isinstance(sql, str)
        try:
            parsed_query(sql)
        except BadQuery as bad:
            raise BadArguments(str(bad), args[1]) from None
        return Ask(table, Measure("query", values=(sql,))), Ask(table, ROWS)

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        number, rows = answers
        if not rows and not moment.expects_rows:
            return no_data("there are no rows")
        if number is None:
            return no_data("the query answers nothing")
        if not isinstance(number, int | float | Decimal):
            return error(f"the query answers {type(number).__name__}, and a number is wanted")
        return Known(Fraction(number)) if math.isfinite(number) else error(f"the query answers {number}")


QUERY = QueryFunction()
