"""The nodes of an expression: immutable, compared by what they mean and not by where they stood in the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from typing import TypeAlias

from quality.domain.language.tree.errors import NO_RANGE, TextRange
from quality.domain.value_types import ValueType

Amount: TypeAlias = Fraction | timedelta | bool | str
"""A value: counts, numbers and ratios are exact fractions, so that 999 of 1000 is not above 99.9%."""

NO_SHIFT = timedelta()


@dataclass(frozen=True)
class Literal:
    """`99.9%` is the ratio 999/1000, `2h` a duration, `'AA'` a text."""

    value: Amount
    value_type: ValueType
    where: TextRange = field(default=NO_RANGE, compare=False, repr=False)


@dataclass(frozen=True)
class Name:
    """`flights`, `this@dc1`, `this@dc1[-7d].tailnum`; a bare word may be a column, if the leaf that takes it says so.

    `shift` is zero or negative, in whole hours: the partition so long before the one that is tested.
    """

    dataset: str
    data_center: str = ""
    column: str = ""
    shift: timedelta = NO_SHIFT
    where: TextRange = field(default=NO_RANGE, compare=False, repr=False)

    @property
    def table(self) -> Name:
        """The same without the column."""
        return Name(self.dataset, self.data_center, shift=self.shift, where=self.where)


@dataclass(frozen=True)
class Call:
    """An operator or a leaf with its arguments: `a / b` is `div(a, b)`."""

    function: str
    args: tuple[Node, ...]
    where: TextRange = field(default=NO_RANGE, compare=False, repr=False)


Node: TypeAlias = Literal | Name | Call
Argument: TypeAlias = Literal | Name
"""What a leaf is given."""


@dataclass(frozen=True)
class Parameters:
    """How the test is run; None leaves it to the tier, the dataset or the deployment."""

    engine: str | None = None
    partition: str | None = None
    sustain: timedelta | None = None
    cadence: timedelta | None = None
    timeout: timedelta | None = None
    by: str | None = None
    """A column: the assertion is evaluated once for each of its values."""
    least: int | None = None
    """Groups of fewer rows are too small to be judged."""
    most: int | None = None
    """So many groups are tested, the largest."""
    dc: str | None = None
    """The test runs in that data center only."""
    calendar: str | None = None
    """A cron line: when data is expected."""
    holidays: str | None = None
    """A country: its holidays are left out of the calendar."""


@dataclass(frozen=True)
class Expression:
    """A whole test: what must hold, and the parameters of the run."""

    assertion: Node
    parameters: Parameters = Parameters()
    parameter_ranges: Mapping[str, TextRange] = field(default_factory=dict, compare=False, repr=False)
    """Where each parameter stood in the text."""

    def where(self, parameter: str) -> TextRange:
        return self.parameter_ranges.get(parameter, NO_RANGE)


def post_order(node: Node) -> Iterator[Node]:
    """Children before their parents, left to right."""
    if isinstance(node, Call):
        for arg in node.args:
            yield from post_order(arg)
    yield node
