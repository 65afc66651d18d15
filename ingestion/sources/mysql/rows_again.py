"""Some rows of a captured table, read again: as events, each with the place between two transactions at which the row was so. They only add: deletes are the log's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation

from ingestion.capture.snapshot.chunks import Key
from ingestion.capture.tap.captured_table import CapturedTable, CaptureSpec
from ingestion.capture.tap.position import reference_key_after
from ingestion.domain.column_types import MAX_PRECISION
from ingestion.domain.merging.events import ChangeEvent, Operation
from ingestion.domain.merging.stored_metadata import SNAPSHOT_SOURCE
from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.heatpipe.broken_message import Defect
from ingestion.heatpipe.decoder import Decoded
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.unencoded_row import UnencodedRow
from ingestion.raw_chunks.chunk_file import NullNote, RawChunk
from ingestion.sources import LoggedEvents, SourceConfig, SourceError, UnreadableRow
from ingestion.sources.mysql.chunk_reading import ChunkReader
from ingestion.sources.mysql.server import MysqlServer

KEYS_AT_ONCE = 500
"""Of a statement."""


def rows_again(
    server: MysqlServer,
    spec: CaptureSpec,
    topic: EventTopic,
    config: SourceConfig,
    keys: Sequence[Sequence[str]],
    metadata: SchemaColumn,
) -> Iterator[LoggedEvents]:
    """One batch, of those that are there. `keys`: values of the record key as texts. Raises SourceError."""
    with server.opened() as opened:
        least = opened.newest_sequence()
        table = opened.captured_table(spec, topic)
        reader = ChunkReader(table, KEYS_AT_ONCE, least, is_landing=False)
        typed = [_typed_key(key, table) for key in keys]
        pieces = [typed[place : place + KEYS_AT_ONCE] for place in range(0, len(typed), KEYS_AT_ONCE)]
        chunks = []
        for piece in pieces:
            read = reader.rows_of(opened, piece)
            chunks.append(read.chunk)
            config.on_rows_read(read.source_rows)
    yield LoggedEvents(
        {},
        tuple(UnreadableRow(*each) for chunk in chunks for each in chunk.unreadable),
        schema=Schema((*table.schema.row_columns, metadata)),
        schema_version=0,
        decoded=[decoded for chunk in chunks for decoded in _decoded(chunk, table)],
        broken=(),
        columns_of={**topic.columns_of, table.schema.version: table.schema.columns},
    )


def _decoded(chunk: RawChunk, table: CapturedTable) -> Iterator[Decoded]:
    reference, names = reference_key_after(chunk.sequence), table.schema.columns
    for place, row in enumerate(zip(*(chunk.columns[name] for name in names), strict=True)):
        values = dict(zip(names, row, strict=True))
        key = tuple(values[name] for name in table.record_key)
        event = ChangeEvent(Operation.UPDATE, key, reference, (chunk.sequence,), values, chunk.schema_version)
        note = _as_row(chunk.nulled.get(place))
        yield Decoded(event, table.schema, SNAPSHOT_SOURCE, "", chunk.read_at, None, note)


def _as_row(note: NullNote | None) -> UnencodedRow | None:
    if note is None:
        return None
    return UnencodedRow("", 0, Defect.TYPE, note.column, note.reason, None, {"row": note.raw}, is_nulled=True)


def _typed_key(key: Sequence[str], table: CapturedTable) -> Key:
    """Of the types of its columns: servers compare a number with a text as fractions, and great ones would be one. Without the value in the error: keys are
    for the members of a team."""
    if len(key) != len(table.record_key):
        raise SourceError(f"A key of {len(key)} values was given, and the record key is {', '.join(table.record_key)}.")
    types = table.schema.row_columns.types
    return tuple(_typed(text, name, types[name]) for text, name in zip(key, table.record_key, strict=True))


def _whole_number(text: str) -> Decimal:
    """As servers have them: what they cannot read they repeat. Raises ValueError, InvalidOperation."""
    number = Decimal(text)
    if not number.is_finite() or number.adjusted() > MAX_PRECISION:
        raise ValueError("It is no number of a column.")
    return number


def _typed(text: str, name: str, type_: str) -> object:
    try:
        match type_.partition("(")[0]:
            case "int" | "long":
                return int(text)
            case "decimal":
                return _whole_number(text)
            case "date":
                return date.fromisoformat(text)
    except (ValueError, InvalidOperation):
        raise SourceError(f"A key was given whose `{name}` is not a value of the type `{type_}`.") from None
    return text
