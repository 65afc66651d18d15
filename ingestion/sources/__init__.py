"""Sources: where rows come from. A source says what columns there are, hands over a snapshot, and what changed since.

To add one: a module here with a class that has the three methods of `Source` and takes a `SourceConfig`; a line in SOURCES; a row in
tests/contracts/test_sources.py. From outside the tree: an entry point of the group `lakehub.sources`.

Rows travel as events, by column, in batches of bounded size: a source never holds a whole table in memory. A reading has one schema, which each of its
batches carries: a source ends it before the first row of another schema version. It also ends it where limits are reached, at a place that has a
position. A position is plain JSON, opaque to everyone else; handing it back yields at least every row that changed since. Rows that were handed
over before may come again (the job counts them as redelivered), but none may be missed, also where many share one watermark.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Protocol, runtime_checkable

from ingestion.domain.batch_limits import UNLIMITED, BatchLimits
from ingestion.domain.checkpoint import Position
from ingestion.domain.merging.column_renames import ColumnRename
from ingestion.domain.merging.events import Operation
from ingestion.domain.schema import Schema
from ingestion.heatpipe.decoder import Decoded
from ingestion.heatpipe.reading import BrokenEvent
from ingestion.raw_chunks.folders import RawFolder
from lakehub.kernel.registry import Registry

_SIZE_SAMPLE = 32
"""So many values of a column say how large the others are."""


class SourceError(RuntimeError):
    """The source cannot be reached, or has not what was asked for; the message says which, and what to do."""


def _ignore_rows(rows: int) -> None:
    """For a reader that has all the time there is."""


@dataclass(frozen=True)
class RawChunks:
    """Where a load lands what it reads, for a source that can: `load` names it. `is_read`: it reads what an earlier load has landed, and not the source."""

    folder: RawFolder
    load: str
    is_read: bool = False


@dataclass(frozen=True)
class SourceConfig:
    """`url` is the secret's value: it is never shown. `object`: a table, or a glob of files below the URL.
    `key_columns`: the record key of the dataset; empty: none is known. `on_rows_read`: told after each piece of the source that was read how many
    rows it had, whether they are handed over or not. It waits where the source is to be spared, and raises where the reader's time is up."""

    url: str = field(repr=False)
    object: str
    cursor_column: str | None = None
    overlap_s: float = 0.0
    chunk_rows: int = 20_000
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    key_columns: tuple[str, ...] = ()
    on_rows_read: Callable[[int], None] = _ignore_rows
    raw: RawChunks | None = None
    """None: nothing lands."""
    readers: int = 1
    """How many connections may read at once, for a source that can."""


@dataclass(frozen=True)
class UnreadableRow:
    """A piece of the source that is not even a row, such as a line that is not JSON."""

    raw: str
    reason: str


@dataclass(frozen=True)
class NulledRow:
    """A row that is handed over with null in place of a value that could not be read: as `RejectedRow`, and the row is stored."""

    column: str
    reason: str
    raw: str


@dataclass(frozen=True)
class Chunk:
    """Some rows by column, as the source has them (Python values or Arrow arrays), not yet made to fit a schema."""

    columns: Mapping[str, Sequence[Any]]
    unreadable: tuple[UnreadableRow, ...] = ()
    nulled: tuple[NulledRow, ...] = ()

    @property
    def rows(self) -> int:
        return max((len(values) for values in self.columns.values()), default=0)

    @property
    def estimated_bytes(self) -> int:
        """What the values take in memory, by a sample of each column."""
        unreadable = sum(len(row.raw) for row in self.unreadable)
        return unreadable + sum(_estimated_bytes(values) for values in self.columns.values())


@dataclass(frozen=True)
class EventBatch(Chunk):
    """Changes of rows in the order of the source. The row key and the reference key are the columns that the dataset names.

    `schema`: of these rows. A column that it lacks was not carried, and keeps its stored value; a null is a value. `schema_version`: equal for equal
    schemas of a source; a change of it is how DDL shows. `operations`: one for each row; None: each row is as it is now (an upsert).
    `committed_at`: when the source committed each row, aware UTC or None; None: the source does not say.
    A source with a log of its own, whose rows carry keys, an order or a data center besides the columns of the table, extends this class.
    """

    schema: Schema = field(kw_only=True)
    schema_version: int = field(kw_only=True)
    operations: Sequence[Operation] | None = field(default=None, kw_only=True)
    committed_at: Sequence[datetime | None] | None = field(default=None, kw_only=True)
    is_new: bool = field(default=False, kw_only=True)
    """Of changes since a position: no reading of changes up to that position has handed over a row of this batch, if rows are never changed. Those of an
    append-only dataset are inserted without a look at the table. A source that is not certain says nothing: a new file may repeat an old one."""
    is_landed: bool = field(default=False, kw_only=True)
    """It was read before, and nothing was asked of the source for it now."""

    @classmethod
    def of(cls, chunk: Chunk, schema: Schema, *, is_new: bool = False) -> EventBatch:
        """Of a source that numbers no schemas and whose rows are upserts."""
        return cls(chunk.columns, chunk.unreadable, schema=schema, schema_version=schema_version(schema), is_new=is_new)


@dataclass(frozen=True)
class LoggedEvents(EventBatch):
    """Events of a changelog, in its order, which are merged into the table column by column; they have no columns of their own. The schema is that of the
    table after the newest of them, with its metadata; each event says its version itself.

    `broken`: messages that are no events. `columns_of`: by version of the schema, the columns of a row. `logged_hours`: how many of them were logged in
    which hour (`TopicBatch`)."""

    decoded: Sequence[Decoded] = field(kw_only=True)
    broken: Sequence[BrokenEvent] = field(kw_only=True)
    columns_of: Mapping[int, Sequence[str]] = field(kw_only=True)
    logged_hours: Mapping[str, int] = field(kw_only=True, default_factory=dict)

    @property
    def rows(self) -> int:
        return len(self.decoded) + len(self.broken) + len(self.unreadable)


def schema_version(schema: Schema) -> int:
    """A number for a schema whose source has none."""
    return zlib.crc32(repr(schema.types).encode())


def _estimated_bytes(values: Sequence[Any]) -> int:
    if hasattr(values, "nbytes"):
        return int(values.nbytes)
    step = max(1, len(values) // _SIZE_SAMPLE)
    sample = [sys.getsizeof(value) for value in islice(values, 0, None, step)]
    return len(values) * sum(sample) // len(sample) if sample else 0


@dataclass(frozen=True)
class UnusableCursors:
    """Rows whose cursor says nothing about where to go on, such as NaN, and some of its values."""

    rows: int = 0
    sample: tuple[str, ...] = ()


def _not_known() -> bool:
    """That all rows are as they were."""
    return False


@dataclass(frozen=True)
class SourceReading:
    """`batches` can be walked once. Asked afterwards: `position`, where the source stands then, `has_more`, whether it ended at a limit or before
    another schema and there may be more to read from that position now, `unchanged`, whether all the rows are known to be as they were, and
    `unusable_cursors`, of which rows later changes may be missed.

    Asked before: `total`, how many rows there are to read as far as the source knows without reading them; None: it does not.
    """

    batches: Iterator[EventBatch]
    position: Callable[[], Position]
    unchanged: Callable[[], bool] = _not_known
    unusable_cursors: Callable[[], UnusableCursors] = UnusableCursors
    total: Callable[[], int | None] = lambda: None
    has_more: Callable[[], bool] = lambda: False
    begins_empty: bool = False
    """Of a snapshot: there are no rows to read, and all come with the changes. Then a table may be replaced by none."""

    @property
    def is_judged_whole(self) -> bool:
        """Whether something is new is known only after all chunks."""
        return self.unchanged is not _not_known

    def close(self) -> None:
        """For who does not walk to the end: what is open at the source, such as a connection, is not kept until somebody collects `batches`."""
        getattr(self.batches, "close", lambda: None)()


@dataclass(frozen=True)
class RenamedColumns:
    """Renames of columns of the source that stored rows do not have yet are `due`, others are `made`. `columns`: the new ones. `columns_of`: by version of
    the schema the columns of a row, before any rename. `position`: that of the table once they are made."""

    due: Sequence[ColumnRename] = ()
    made: Sequence[ColumnRename] = ()
    columns: Schema = field(default_factory=lambda: Schema(()))
    columns_of: Mapping[int, Sequence[str]] = field(default_factory=dict)
    position: Position = field(default_factory=dict)


@dataclass(frozen=True)
class EmptiedTable:
    """`before`: rows whose newest change has a lesser reference key were there when the source was emptied last; empty: it never was. `position`: that of the
    table once they are deleted; None: they are."""

    before: bytes = b""
    position: Position | None = None


@dataclass(frozen=True)
class AcceptedColumns:
    """Of the newest version of the schema, which the table gets whether a row has them or not. `version`: 0: none is known. `columns`: None: it is no schema of change events. `is_due`: the table follows an older version."""

    version: int = 0
    columns: Schema | None = None
    is_due: bool = False


@dataclass(frozen=True)
class LogReading(SourceReading):
    """Of a changelog: its batches are LoggedEvents, one at most, which may be read once no rename is due. `lag`: how many messages there are to read from
    its beginning on, asked without reading them."""

    lag: Callable[[], int] = lambda: 0
    renames: RenamedColumns = field(default_factory=RenamedColumns)
    emptied: EmptiedTable = field(default_factory=EmptiedTable)
    accepted: AcceptedColumns = field(default_factory=AcceptedColumns)


class Source(Protocol):
    """`only` keeps the rows whose column has one of the values: {column: values}. `upto`: rows with a later watermark are not there yet.
    `limits`: where a reading ends that could go on. A source may read a snapshot in one piece whatever they say. If it does not, a key is in one reading only, and the position of a reading that says `has_more` is for
    `after` of the next; the last one's is for `changes`, which then yields what changed since the first began."""

    def schema(self) -> Schema: ...

    def snapshot(
        self,
        *,
        upto: datetime | None = None,
        only: Mapping[str, Sequence[str]] | None = None,
        after: Position | None = None,
        limits: BatchLimits = UNLIMITED,
    ) -> SourceReading: ...

    def changes(
        self, position: Position, *, upto: datetime | None = None, limits: BatchLimits = UNLIMITED
    ) -> SourceReading: ...


@runtime_checkable
class ReadsRowsAgain(Protocol):
    """A source of captured rows that can be asked for some of them."""

    def rows_again(self, keys: Sequence[Sequence[str]]) -> LogReading:
        """`keys`: values of the record key as texts. What is there comes as changes, one batch at most; its position says nothing."""


def has_changes(
    source: Source,
    position: Position,
    *,
    upto: datetime | None = None,
    tell_rows: Callable[[int], None] = lambda rows: None,
) -> bool:
    """Is there anything that `changes` would hand over? Reads up to the first chunk that holds something; `tell_rows` hears how many rows
    were handed over.

    A source without positions in its rows (`unchanged`) is read to its end: only that says whether something is new.
    """
    reading, is_empty, handed_over = source.changes(position, upto=upto), True, 0
    if isinstance(reading, LogReading):
        return reading.emptied.position is not None or reading.accepted.is_due or reading.lag() > 0
    try:
        for chunk in reading.batches:
            handed_over += chunk.rows
            is_empty = is_empty and not (chunk.rows or chunk.unreadable)
            if not is_empty and not reading.is_judged_whole:
                return True
    finally:
        reading.close()
        tell_rows(handed_over)
    return not is_empty and not reading.unchanged()


SOURCES: Registry[Callable[[SourceConfig], Source]] = Registry(
    "source",
    {
        "sql": "ingestion.sources.sql.source:SqlSource",
        "mysql": "ingestion.sources.mysql.source:MysqlSource",
        "kafka": "ingestion.sources.kafka.source:KafkaSource",
        "schemaless": "ingestion.sources.mysql.schemaless:SchemalessSource",
        "files": "ingestion.sources.files.source:FilesSource",
    },
    group="lakehub.sources",
)
