"""findings(table, kind): how many findings of a kind ingestion has open on the range; none is a good answer, not a missing one."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from quality.domain.expression.kinds import Kind
from quality.domain.expression.leaves.arguments import a_table, bare_columns, exactly
from quality.domain.expression.measures import Answer, Ask, Measure
from quality.domain.expression.nodes import Argument
from quality.domain.expression.values import Known, Moment, Value


class Findings:
    signature = "findings(table, kind)"
    kind = Kind.COUNT
    tables = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        exactly(args, 2, 2, self.signature)
        return (Ask(a_table(args[0], self.signature), Measure("findings", bare_columns(args[1:], self.signature))),)

    def value(self, answers: Sequence[Answer], moment: Moment) -> Value:
        (open_findings,) = answers
        assert isinstance(open_findings, int)
        return Known(Fraction(open_findings))


FINDINGS = Findings()
