"""The functions of expressions, which are their leaves: what can be measured.

To add one: write a file here with an object that fits `Function`, add its line to FUNCTIONS, describe it in docs/expressions.md
and, where it needs a new measure, add the measure's line to each engine (quality/engines; the contract suite shows which lacks it).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lakehub.kernel.registry import Registry
from quality.domain.language.measures import Answer, Ask
from quality.domain.language.tree.nodes import Argument
from quality.domain.language.values import EvaluationContext, Value
from quality.domain.value_types import ValueType


class Function(Protocol):
    """What can be measured. `signature` is shown in errors and in the docs."""

    signature: str
    value_type: ValueType
    table_arguments: int
    """So many of its first arguments are tables, or columns of them, that are looked at in one partition."""

    def asks(self, args: Sequence[Argument]) -> tuple[Ask, ...]:
        """The measures that it needs. Raises BadArguments."""

    def value(self, answers: Sequence[Answer], moment: EvaluationContext) -> Value:
        """Its worth, from the answers in the order of `asks`."""


_HERE = "quality.domain.language.functions"
FUNCTIONS: Registry[Function] = Registry(
    "function",
    {
        "rows": f"{_HERE}.rows:ROWS_FUNCTION",
        "distinct": f"{_HERE}.distinct:DISTINCT",
        "repeated": f"{_HERE}.repeated:REPEATED",
        "across_partitions": f"{_HERE}.across_partitions:ACROSS_PARTITIONS",
        "nulls": f"{_HERE}.nulls:NULLS",
        "null_keys": f"{_HERE}.null_keys:NULL_KEYS",
        "outside": f"{_HERE}.outside:OUTSIDE",
        "mismatched": f"{_HERE}.mismatched:MISMATCHED",
        "unexpected": f"{_HERE}.unexpected:UNEXPECTED",
        "unmatched": f"{_HERE}.unmatched:UNMATCHED",
        "sum": f"{_HERE}.statistics:SUM",
        "mean": f"{_HERE}.statistics:MEAN",
        "minimum": f"{_HERE}.statistics:MINIMUM",
        "maximum": f"{_HERE}.statistics:MAXIMUM",
        "drift": f"{_HERE}.drift:DRIFT",
        "query": f"{_HERE}.query:QUERY",
        "matching": f"{_HERE}.matching:MATCHING",
        "sampled": f"{_HERE}.sampled:SAMPLED",
        "difference": f"{_HERE}.difference:DIFFERENCE",
        "freshness": f"{_HERE}.freshness:FRESHNESS",
        "delay": f"{_HERE}.delay:DELAY",
        "findings": f"{_HERE}.findings:FINDINGS",
    },
)
