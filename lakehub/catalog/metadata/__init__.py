"""What is known of a table before it is read whole: its columns, its key, how well a key holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from lakehub.catalog.metadata.key_evidence import EVIDENCE_LIMIT as EVIDENCE_LIMIT
from lakehub.catalog.metadata.key_evidence import SAMPLE_ROWS as SAMPLE_ROWS
from lakehub.catalog.metadata.key_evidence import SAMPLE_SEED as SAMPLE_SEED
from lakehub.catalog.metadata.key_evidence import Drawn as Drawn
from lakehub.catalog.metadata.key_evidence import KeyEvidence as KeyEvidence

SAMPLE_SHOWN = 5
"""So many rows of a table are shown to whoever onboards it."""
VALUES_LIMIT = 1_000_000
"""The newest values of a column of a database are looked for in at most this many rows."""


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
    TIME = "time"
    JSON = "json"
    STRUCT = "struct"
    ARRAY = "array"
    MAP = "map"
    OTHER = "other"

    @property
    def is_nested(self) -> bool:
        """Its values are in no order, and no text names them."""
        return self in NESTED_TYPES


NESTED_TYPES = frozenset({ColumnType.STRUCT, ColumnType.ARRAY, ColumnType.MAP})


@dataclass(frozen=True)
class ColumnMetadata:
    name: str
    type: ColumnType
    nullable: bool = True


SampleRows: TypeAlias = tuple[tuple[str, ...], ...]
"""Some rows for people to look at: values as short texts, in the order of the columns."""
_MAX_SHOWN = 60


def shown_value(value: object) -> str:
    """As a sample shows it; empty for null."""
    text = "" if value is None else str(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


@dataclass(frozen=True)
class TableMetadata:
    columns: tuple[ColumnMetadata, ...]
    primary_key: tuple[str, ...] = ()
    sample: SampleRows = ()
    """Of a storage that has to read some rows to know the columns."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True)
class NewestValues:
    """Different values of some columns together, the greatest first."""

    values: Sequence[tuple[object, ...]] = ()
    first_rows: int | None = None
    """They are of so many rows, in the order in which the source gave them, and there are more. None: of all rows."""

    @property
    def scope(self) -> str:
        """`of the first 1,000,000 rows`; empty where they are of all."""
        return "" if self.first_rows is None else f"of the first {self.first_rows:,} rows"


class MetadataUnavailable(RuntimeError):
    """The storage cannot be reached, or has no such table; the message says which and what to do."""


class StorageUnreachable(MetadataUnavailable):
    """The storage let nobody in, or fell silent: no other table of it can be looked at just now either."""


class NoSuchTable(MetadataUnavailable):
    """The storage was reached, and has no such table: nothing is wrong with the way there."""
