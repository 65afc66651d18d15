"""sampled(table, upstream): the share of the rows sampled upstream whose key is here. For upstreams outside the lake.

`sampled(this, upstream, 1000, origin, day)` says how many are sampled and by which key; else 1,000, by the primary key.
"""

from __future__ import annotations

from collections.abc import Sequence

from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves import BadArguments
from quality.domain.expression.leaves.arguments import a_literal, a_table, bare_columns, exact, exactly
from quality.domain.expression.leaves.exchanged import share_of
from quality.domain.expression.measures import ROWS, Answer, Ask, Measure
from quality.domain.expression.nodes import Argument
from quality.domain.expression.values import Moment, Value

USUAL, MOST = 1_000, 100_000


class Sampled:
    signature = "sampled(table, upstream[, rows[, key, ...]])"
    kind = Kind.RATIO
    tables = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 2, 35, self.signature)
        table, upstream = (a_table(arg, self.signature) for arg in args[:2])
        if upstream.shift:
            raise BadArguments("The same partition of both tables is compared: leave out the second shift.", args[1])
        rows = _size(args[2], self.signature) if len(args) > 2 else USUAL
        key = bare_columns(args[3:], self.signature)
        return Ask(table, Measure("sampled", key, upstream, key, (rows,))), Ask(table, ROWS)

    def value(self, answers: Sequence[Answer], moment: Moment) -> Value:
        return share_of(answers)


def _size(arg: Argument, signature: str) -> int:
    size = exact(a_literal(arg, (Kind.NUMBER,), "a number of rows", signature))
    if not isinstance(size, int) or not 0 < size <= MOST:
        raise BadArguments(f"A sample has 1 to {MOST:,} rows, not {size}.", arg)
    return size


SAMPLED = Sampled()
