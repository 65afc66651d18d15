"""The window functions of expressions: what is made of one value in the tested partition and in the partitions before it.

`deviation(x, 8w)` is an example: x is measured at every shift that the function names. To add one: write a file here with an
object that fits `WindowFunction`, add its line to WINDOW_FUNCTIONS and describe it in docs/expressions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain
from lakehub.kernel.registry import Registry
from quality.domain.language.tree.nodes import Literal
from quality.domain.language.values import EvaluationContext, Known, Value
from quality.domain.value_types import ValueType


@dataclass(frozen=True)
class PastValue:
    """What the value was in an earlier partition."""

    partition: Interval
    value: Value


class WindowFunction(Protocol):
    """Given as `name(x, arguments ...)`. `signature` is shown in errors and in the docs."""

    signature: str
    value_type: ValueType

    def shifts(self, kind: ValueType, args: Sequence[Literal]) -> tuple[timedelta, ...]:
        """How far back x, which is of `kind`, is measured. Raises BadArguments."""

    def min_history(self, kind: ValueType, args: Sequence[Literal], grain: Grain) -> timedelta:
        """How much past it must have for an answer, where the partitions are by `grain`."""

    def value(self, kind: ValueType, present: Known, past: Sequence[PastValue], moment: EvaluationContext) -> Value:
        """Its worth for x, of `kind`, in the tested partition and before it."""


WINDOW_FUNCTIONS: Registry[WindowFunction] = Registry(
    "function", {"deviation": "quality.domain.language.window_functions.deviation:DEVIATION"}
)
