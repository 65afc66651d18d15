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
from typing import TypeAlias

from quality.domain.expression.nodes import Name


class Reach(StrEnum):
    """How much of a table a measure looks at."""

    PARTITION = "partition"
    TABLE = "table"
    EACH_PARTITION = "each partition"


@dataclass(frozen=True)
class Measure:
    """`kind` over `columns`; `unmatched` looks its values up in `other_columns` of the table `other`."""

    kind: str
    columns: tuple[str, ...] = ()
    other: Name | None = None
    other_columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(self.columns)})"


ROWS = Measure("rows")
COMMITTED = Measure("committed")
"""When the newest commit of a copy completed."""


@dataclass(frozen=True)
class Ask:
    """A measure of a table that an expression names."""

    table: Name
    measure: Measure
    reach: Reach = Reach.PARTITION


Scalar: TypeAlias = int | float | Decimal | datetime | date | str | None
Answer: TypeAlias = Scalar | Mapping[str | None, Scalar]
"""EACH_PARTITION answers by partition name; a null in the partition column is under None."""
