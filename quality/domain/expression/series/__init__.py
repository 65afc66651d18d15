"""The series of expressions: what is made of one value in the tested partition and in the partitions before it.

`deviation(x, 8w)` is an example: x is measured at every shift that the series names. To add one: write a file here with an
object that fits `Series`, add its line to SERIES and describe it in docs/expressions.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from lakehub.kernel.calendar import Grain
from lakehub.kernel.interval import Interval
from lakehub.kernel.registry import Registry
from quality.domain.expression.kinds import Kind
from quality.domain.expression.nodes import Literal
from quality.domain.expression.values import Known, Moment, Value


@dataclass(frozen=True)
class Past:
    """What the value was in an earlier partition."""

    partition: Interval
    value: Value


class Series(Protocol):
    """Given as `name(x, arguments ...)`. `signature` is shown in errors and in the docs."""

    signature: str
    kind: Kind

    def shifts(self, kind: Kind, args: Sequence[Literal]) -> tuple[timedelta, ...]:
        """How far back x, which is of `kind`, is measured. Raises BadArguments."""

    def least(self, kind: Kind, args: Sequence[Literal], grain: Grain) -> timedelta:
        """How much past it must have for an answer, where the partitions are by `grain`."""

    def value(self, kind: Kind, present: Known, past: Sequence[Past], moment: Moment) -> Value:
        """Its worth for x, of `kind`, in the tested partition and before it."""


SERIES: Registry[Series] = Registry("function", {"deviation": "quality.domain.expression.series.deviation:DEVIATION"})
