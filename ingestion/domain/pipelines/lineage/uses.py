"""What a query does with a column of an input, in OpenLineage's words (the subtypes of its facet `columnLineage`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Use(StrEnum):
    """The first three are direct: the value is made from the column's. The others are indirect: the column decides what the value is, or which rows there are."""

    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"
    CONDITIONAL = "CONDITIONAL"
    WINDOW = "WINDOW"
    JOIN = "JOIN"
    GROUP_BY = "GROUP_BY"
    FILTER = "FILTER"
    SORT = "SORT"

    @property
    def is_direct(self) -> bool:
        return self in _DIRECT

    def of(self, inner: Use) -> Use:
        """What a column is to a value that is this of another one, which is `inner` of the column: a sum of what was computed is an aggregation."""
        if not self.is_direct or not inner.is_direct:
            return inner if self.is_direct else self
        return max(self, inner, key=_DIRECT.index)


_DIRECT = (Use.IDENTITY, Use.TRANSFORMATION, Use.AGGREGATION)


@dataclass(frozen=True, order=True)
class InputColumn:
    """`input`: as the SELECT calls it."""

    input: str
    column: str


Uses = Mapping[InputColumn, frozenset[Use]]
"""Of each column of an input that has to do with it, all that is done with it."""


def gather_uses(pairs: Iterable[tuple[InputColumn, Use]]) -> Uses:
    uses: dict[InputColumn, frozenset[Use]] = {}
    for column, use in pairs:
        uses[column] = uses.get(column, frozenset()) | {use}
    return dict(sorted(uses.items()))


def pairs_of(*several: Uses) -> Iterable[tuple[InputColumn, Use]]:
    return ((column, use) for uses in several for column, each in uses.items() for use in each)
