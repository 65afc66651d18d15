"""What an engine can be asked for: one scan answers all the measures of one table and partition.

A measure is data, not SQL: each engine has its own line for each kind. `rows`, `filled`, `nulls`, `sum`, `minimum`
and `maximum` are states that merge over partitions (after deequ); `distinct` and `unmatched` are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeAlias

from quality.domain.expression.nodes import Name

Scalar: TypeAlias = int | float | Decimal | datetime | date | str | None


class Reach(StrEnum):
    """How much of a table a measure looks at."""

    PARTITION = "partition"
    TABLE = "table"
    EACH_PARTITION = "each partition"


@dataclass(frozen=True)
class Measure:
    """`kind` over `columns`; `unmatched` looks its values up in `other_columns` of the table `other`.

    `values` are bound as parameters, never put into the text of a query: the bounds of `outside`, the pattern of
    `mismatched`, what `unexpected` accepts, the share of `matching`, the size of `sampled`. A `query` has its SQL first;
    measuring adds what it binds to :start, :end and :partition.
    """

    kind: str
    columns: tuple[str, ...] = ()
    other: Name | None = None
    other_columns: tuple[str, ...] = ()
    values: tuple[Scalar, ...] = ()

    def __str__(self) -> str:
        said = [*self.columns, *(str(value) for value in self.values)]
        return f"{self.kind}({', '.join(said)})"


ROWS = Measure("rows")
COMMITTED = Measure("committed")
"""When the newest commit of a copy completed."""


@dataclass(frozen=True)
class Ask:
    """A measure of a table that an expression names."""

    table: Name
    measure: Measure
    reach: Reach = Reach.PARTITION


Answer: TypeAlias = Scalar | Mapping[str | None, Any]
"""EACH_PARTITION answers by partition name, a scan `by` a column by its value, `frequencies` by bin; a null is under None.
`matching` and `sampled` answer with `matching` and `keys`, the `missing` records and a report."""
