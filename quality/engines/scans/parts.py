"""Which rows of a table a scan reads, and what is said where they cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from lakehub.kernel.partitions import parse_partition_name
from lakehub.kernel.partitions.form import Condition, Equals, PartitionForm


class CannotRead(Exception):
    """The table cannot be read: it is none, is not there, or does not answer. Says which, and the remedy."""


@dataclass(frozen=True)
class WholeTable:
    """All rows."""


@dataclass(frozen=True)
class OnePartition:
    """The rows of one partition: those whose partition column has this value.

    With a `form` the value is the name of the partition, and the form says what the columns hold. `also` are the values of further
    partitions whose rows are looked at with these: the hours of a day.
    """

    column: str
    value: str
    form: PartitionForm | None = None
    also: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[str, ...]:
        return (self.value, *self.also)

    @property
    def alternatives(self) -> tuple[tuple[Condition, ...], ...]:
        """What the columns of a row must be: all the conditions of one alternative."""
        return tuple(self._conditions(value) for value in self.values)

    def _conditions(self, value: str) -> tuple[Condition, ...]:
        if self.form is None:
            return (Equals(self.column, value),)
        return self.form.conditions(parse_partition_name(value, self.form.grain, self.form.zone))


@dataclass(frozen=True)
class EachPartition:
    """All rows, answered by the value of the partition column; with a `form` by the name of the partition.

    A value that is no partition keeps its rows under the text that it is (PartitionForm.name_of).
    """

    column: str
    form: PartitionForm | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,) if self.form is None else self.form.columns

    def name_of(self, value: str | None) -> str | None:
        return value if self.form is None else self.form.name_of(value)


Part: TypeAlias = WholeTable | OnePartition | EachPartition
