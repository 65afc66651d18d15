"""Which rows of a table a scan reads, and what is said where they cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


class CannotRead(Exception):
    """The table cannot be read: it is none, is not there, or does not answer. Says which, and the remedy."""


@dataclass(frozen=True)
class WholeTable:
    """All rows."""


@dataclass(frozen=True)
class OnePartition:
    """The rows whose partition column has this value."""

    column: str
    value: str


@dataclass(frozen=True)
class EachPartition:
    """All rows, answered by the value of the partition column."""

    column: str


Part: TypeAlias = WholeTable | OnePartition | EachPartition
