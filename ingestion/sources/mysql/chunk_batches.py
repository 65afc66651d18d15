"""A chunk of a captured table as a batch: its rows, each with the metadata that says after which transaction it was so."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ingestion.capture.tap.position import reference_key_after
from ingestion.domain.merging.events import Version
from ingestion.domain.merging.row_state import ColumnState, RowState
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN, SNAPSHOT_SOURCE, LatestEvent, metadata_of
from ingestion.domain.schema import Schema, SchemaColumn, evolve_schema
from ingestion.heatpipe.row_keys import row_key_text
from ingestion.raw_chunks.chunk_file import RawChunk
from ingestion.sources import EventBatch, NulledRow, UnreadableRow


def has_room_for(schema: Schema, chunk: Schema) -> bool:
    """Do rows of the chunk's columns fit a table of these?"""
    return evolve_schema(schema, chunk).target == schema


def batch_of(
    chunk: RawChunk,
    record_key: Sequence[str],
    schema: Schema,
    version: int,
    metadata: SchemaColumn,
    *,
    is_landed: bool = False,
) -> EventBatch:
    """`schema`, `version`: of all chunks of the reading, which have room for this one's columns; those that it lacks are null. `is_landed`: it was not asked
    of the source."""
    values = zip(*(chunk.columns[name] for name in record_key), strict=True)
    keys = [row_key_text(key) for key in values]
    unreadable = tuple(UnreadableRow(raw, reason) for raw, reason in chunk.unreadable)
    nulled = tuple(NulledRow(*note) for note in chunk.nulled.values())
    columns = {**chunk.columns, METADATA_COLUMN: _metadata(keys, chunk)}
    target = Schema((*schema, metadata))
    return EventBatch(columns, unreadable, nulled, schema=target, schema_version=version, is_landed=is_landed)


def _metadata(keys: Sequence[str], chunk: RawChunk) -> pa.Array:
    """All alike but for the key."""
    version, names = Version(reference_key_after(chunk.sequence), "", (chunk.sequence,)), chunk.schema.names
    state = RowState(dict.fromkeys(names, ColumnState(None, version)))
    latest = LatestEvent(SNAPSHOT_SOURCE, None, chunk.read_at, chunk.schema_version)
    registered = names if chunk.schema_version else ()
    each = pa.array([metadata_of("", state, latest, registered)]).take(pa.array([0] * len(keys), pa.int64()))
    fields = {name: each.field(name) for name in each.type.names} | {"row_key": pa.array(keys, pa.string())}
    return pa.StructArray.from_arrays([*fields.values()], names=[*fields])
