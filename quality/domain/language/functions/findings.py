"""findings(table, kind): how many findings of a kind ingestion has open on the range; none is a good answer, not a missing one."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from quality.domain.language.function_support.arguments import check_argument_count, column_names, table_argument
from quality.domain.language.measures import Answer, Ask, Measure
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Known, Value
from quality.domain.value_types import ValueType


class FindingsFunction:
    signature = "findings(table, kind)"
    value_type = ValueType.COUNT
    table_arguments = 1

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        check_argument_count(args, 2, 2, self.signature)
        return (
            Ask(table_argument(args[0], self.signature), Measure("findings", column_names(args[1:], self.signature))),
        )

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        (open_findings,) = answers
        assert isinstance(open_findings, int)
        return Known(Fraction(open_findings))


FINDINGS = FindingsFunction()
