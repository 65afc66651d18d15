"""Sources: where rows come from. A source says what columns there are, hands over a snapshot, and what changed since.

To add one: a module here with a class that has the three methods of `Source` and takes a `SourceConfig`; a line in SOURCES; a row in
tests/contracts/test_sources.py. From outside the tree: an entry point of the group `lakehub.sources`. Rows travel in chunks of bounded size: a source never holds a whole table in memory. A position is plain
JSON, opaque to everyone else; handing it back to `changes` yields at least every row that changed since. Rows that were handed over
before may come again (the job counts them as redelivered), but none may be missed, also where many share one watermark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema
from lakehub.kernel.registry import Registry


class SourceError(RuntimeError):
    """The source cannot be reached, or has not what was asked for; the message says which, and what to do."""


@dataclass(frozen=True)
class SourceConfig:
    """`url` is the secret's value: it is never shown. `object`: a table, or a glob of files below the URL."""

    url: str
    object: str
    cursor_column: str | None = None
    overlap_s: float = 0.0
    chunk_rows: int = 20_000
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class UnreadableRow:
    """A piece of the source that is not even a row, such as a line that is not JSON."""

    raw: str
    reason: str


@dataclass(frozen=True)
class Chunk:
    """Some rows by column, as the source has them (Python values or Arrow arrays), not yet made to fit a schema."""

    columns: Mapping[str, Sequence[Any]]
    unreadable: tuple[UnreadableRow, ...] = ()

    @property
    def rows(self) -> int:
        return max((len(values) for values in self.columns.values()), default=0)


@dataclass(frozen=True)
class UnusableCursors:
    """Rows whose cursor says nothing about where to go on, such as NaN, and some of its values."""

    rows: int = 0
    sample: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceReading:
    """`chunks` can be walked once. Asked afterwards: `position`, where the source stands then, `unchanged`, whether all the rows are known to
    be as they were, and `unusable_cursors`, of which rows later changes may be missed.

    Asked before: `total`, how many rows there are to read as far as the source knows without reading them; None: it does not.
    """

    chunks: Iterator[Chunk]
    position: Callable[[], Position]
    unchanged: Callable[[], bool] = lambda: False
    unusable_cursors: Callable[[], UnusableCursors] = UnusableCursors
    total: Callable[[], int | None] = lambda: None


class Source(Protocol):
    """`only` keeps the rows whose column has one of the values: {column: values}. `upto`: rows with a later watermark are not there yet."""

    def schema(self) -> Schema: ...

    def snapshot(
        self, *, upto: datetime | None = None, only: Mapping[str, Sequence[str]] | None = None
    ) -> SourceReading: ...

    def changes(self, position: Position, *, upto: datetime | None = None) -> SourceReading: ...


SOURCES: Registry[Callable[[SourceConfig], Source]] = Registry(
    "source",
    {
        "sql": "ingestion.sources.sql.source:SqlSource",
        "files": "ingestion.sources.files.source:FilesSource",
    },
    group="lakehub.sources",
)
