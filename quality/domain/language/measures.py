"""What an engine can be asked for: one scan answers all the measures of one table and partition.

A measure is data, not SQL: each engine has its own line for each kind. `rows`, `filled`, `nulls`, `sum`, `minimum`
and `maximum` are states that merge over partitions (after deequ); `distinct` and `unmatched` are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeAlias

from quality.domain.language.scope import THIS
from quality.domain.language.tree.nodes import Name
from quality.domain.user_sql import parsed_query

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
    `mismatched`, what `unexpected` accepts, the share of `matching`, the size of `sampled`, the columns that `difference` leaves out. A `query` has its SQL first;
    measuring adds what it binds to :start, :end and :partition.
    """

    kind: str
    columns: tuple[str, ...] = ()
    other: Name | None = None
    other_columns: tuple[str, ...] = ()
    values: tuple[Scalar, ...] = ()
    shown: tuple[str, ...] = ()
    """Columns of the rows that it counts: with them it answers with some of these rows instead of their number."""

    @property
    def is_query(self) -> bool:
        """SQL that a person wrote."""
        return self.kind == "query"

    @property
    def is_recorded(self) -> bool:
        """Lakehub's own database may know it: of what it ingests it has the commits and what it found."""
        return self.kind in ("committed", "delay", "findings")

    @property
    def other_tables(self) -> tuple[Name, ...]:
        """The tables that it looks into besides its own."""
        if self.is_query:
            return tuple(Name(table) for table in parsed_query(str(self.values[0])).tables if table != THIS)
        return () if self.other is None else (self.other,)

    def __str__(self) -> str:
        arguments = [*self.columns, *(str(value) for value in self.values)]
        return f"{self.kind}({', '.join(arguments)})"


ROWS = Measure("rows")
LAST_COMMIT = Measure("committed")
"""When the newest commit of a copy completed."""
LATEST = "latest"
"""The kind of the greatest value of a column of times before a bound; measuring binds the beginning of the bucket that goes on."""


_UNKNOWN_WITHOUT_ROWS = frozenset({"sum", "minimum", "maximum", LATEST, "query", "committed", "delay"})


def answer_without_rows(measure: Measure) -> Answer:
    """Its answer over no rows at all: counts are 0, the rest is not known."""
    if measure.kind == "frequencies" or measure.shown:
        return {}
    return None if measure.kind in _UNKNOWN_WITHOUT_ROWS else 0


@dataclass(frozen=True)
class Ask:
    """A measure of a table that an expression names."""

    table: Name
    measure: Measure
    reach: Reach = Reach.PARTITION

    def shifted(self, shift: timedelta) -> Ask:
        """The same of the partition moved by `shift`; a table that is looked at as a whole has but one."""
        if not shift or self.reach is not Reach.PARTITION:
            return self
        return replace(self, table=replace(self.table, shift=self.table.shift + shift))


Answer: TypeAlias = Scalar | Mapping[str | None, Any]
"""EACH_PARTITION answers by partition name, a scan `by` a column by its value, `frequencies` by bin; a null is under None.
A measure with `shown` columns answers with `columns` and `rows`, lists of texts and nulls; of no rows with nothing.
`matching` and `sampled` answer with `matching` and `keys`, the `missing` records and a report; `difference` with how many of `keys`
are `differing`, the `differences` and a report."""
