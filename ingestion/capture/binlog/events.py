"""What a binlog says, in order: transactions begin, have changes of rows or a statement, and end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from ingestion.capture.binlog.table_map import TableMap


class BinlogError(RuntimeError):
    """The binlog cannot be read; the message says why, and what to do."""


Row = Mapping[str, Any]
"""By column, as the decoder hands it over (`column_values`)."""


class Gtid(NamedTuple):
    """MariaDB's name of a transaction. Within a domain the sequence grows, whichever server writes."""

    domain: int
    server: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.domain}-{self.server}-{self.sequence}"


class RowChange(NamedTuple):
    """Of an insert `before` is None, of a delete `after`."""

    before: Row | None
    after: Row | None


@dataclass(frozen=True)
class Begin:
    """`at`: to the second."""

    gtid: Gtid
    at: datetime


@dataclass(frozen=True)
class RowsChanged:
    """Of one table, in order; a statement may take several of them."""

    table: TableMap
    changes: Sequence[RowChange]


@dataclass(frozen=True)
class Unreadable:
    """Rows of a table that was asked for, which the decoder or the description of the table does not allow to read."""

    database: str
    table: str
    reason: str


@dataclass(frozen=True)
class Statement:
    """What is written as it was given: definitions of tables, TRUNCATE. `database`: the one that it was given in."""

    database: str
    sql: str


@dataclass(frozen=True)
class Savepoint:
    name: str


@dataclass(frozen=True)
class RolledBackTo:
    """What came after the savepoint never was."""

    name: str


class Ending(StrEnum):
    COMMITTED = "committed"
    ROLLED_BACK = "rolled_back"
    """It is in the log because it has changed something else too, such as a temporary table."""
    PREPARED = "prepared"
    """By a coordinator (XA), which says later what becomes of it."""


@dataclass(frozen=True)
class End:
    """Of the transaction."""

    ending: Ending = Ending.COMMITTED


BinlogEvent = Begin | RowsChanged | Unreadable | Statement | Savepoint | RolledBackTo | End
