"""Reads what a storage knows of a table: columns, key, how well a key holds. A dataset need not be ingested for that.

To add a storage: one file with a class that has the three methods of `MetadataReader`, one line in METADATA_READERS, one row in
tests/contracts/test_metadata.py. A reader is made from a URL and never writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from lakehub.kernel.registry import Registry

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


class MetadataReader(Protocol):
    def tables(self, limit: int) -> Sequence[str]:
        """Names that `describe` takes, sorted."""

    def describe(self, table: str) -> TableMetadata:
        """Raises NoSuchTable, or MetadataUnavailable where that cannot be known."""

    def key_evidence(self, table: str, key: Sequence[str]) -> KeyEvidence:
        """How well `key` holds, on at most EVIDENCE_LIMIT rows. Raises MetadataUnavailable."""


METADATA_READERS: Registry[Callable[[str], MetadataReader]] = Registry(
    "metadata reader",
    {
        "sql": "lakehub.catalog.metadata.readers.sql:SqlMetadataReader",
        "files": "lakehub.catalog.metadata.readers.files:FilesMetadataReader",
        "hudi": "lakehub.catalog.metadata.readers.hudi:HudiMetadataReader",
    },
)
"""By the plug-in name of a connection."""
