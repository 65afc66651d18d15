"""matching(table, other): of the keys of the other table the share that is in this one, by a Bloom filter that travels.

`matching(this, this@dc2, 10%)` looks at a tenth of the keys, the same in both; `matching(this, this@dc2, 100%, origin, day)`
names the key, which else is the primary key. Both are looked at in the same partition. The missing keys are named.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves import BadArguments
from quality.domain.expression.leaves.arguments import a_literal, a_table, bare_columns, exact, exactly
from quality.domain.expression.leaves.exchanged import share_of
from quality.domain.expression.measures import ROWS, Answer, Ask, Measure, Scalar
from quality.domain.expression.nodes import Argument
from quality.domain.expression.values import Moment, Value


class Matching:
    signature = "matching(table, other[, share[, key, ...]])"
    kind = Kind.RATIO
    tables = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 2, 35, self.signature)
        table, other = (a_table(arg, self.signature) for arg in args[:2])
        if other.shift:
            raise BadArguments("The same partition of both tables is compared: leave out the second shift.", args[1])
        share = _share(args[2], self.signature) if len(args) > 2 else 1
        key = bare_columns(args[3:], self.signature)
        return Ask(table, Measure("matching", key, other, key, (share,))), Ask(table, ROWS)

    def value(self, answers: Sequence[Answer], moment: Moment) -> Value:
        return share_of(answers)


def _share(arg: Argument, signature: str) -> Scalar:
    literal = a_literal(arg, (Kind.RATIO,), "a share such as 10%", signature)
    assert isinstance(literal.value, Fraction)
    if not 0 < literal.value <= 1:
        raise BadArguments("The share of the keys is more than 0% and at most 100%.", literal)
    return exact(literal)


MATCHING = Matching()
