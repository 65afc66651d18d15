"""What is known of a table before it is read whole: its columns, its key, how well a key holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

EVIDENCE_LIMIT = 1_000_000
"""Keys are checked on at most this many rows."""


class ColumnType(StrEnum):
    """The types that Lakehub tells apart, whatever a storage calls them."""

    STRING = "string"
    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    BINARY = "binary"
    OTHER = "other"


@dataclass(frozen=True)
class ColumnMetadata:
    name: str
    type: ColumnType
    nullable: bool = True


@dataclass(frozen=True)
class TableMetadata:
    columns: tuple[ColumnMetadata, ...]
    primary_key: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True)
class KeyEvidence:
    """Of `rows` looked at, `distinct` values of the key (nulls left out), and `nulls` rows where a part of it is null."""

    rows: int
    distinct: int
    nulls: int


class MetadataUnavailable(RuntimeError):
    """The storage cannot be reached, or has no such table; the message says which and what to do."""


class NoSuchTable(MetadataUnavailable):
    """The storage was reached, and has no such table: nothing is wrong with the way there."""
