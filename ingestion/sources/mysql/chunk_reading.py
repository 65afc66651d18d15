"""Reads chunks of a captured table from its server, each as one that can land."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ingestion.capture.binlog.events import Row
from ingestion.capture.null_instead import null_reason
from ingestion.capture.snapshot.chunks import Key, SnapshotChunk, end_of_chunk, read_chunk, read_keys, read_range
from ingestion.capture.snapshot.key_position import EncodedKey, decode_key, encode_key
from ingestion.capture.tap.captured_table import CapturedTable, CaptureSpec
from ingestion.raw_chunks.chunk_file import ChunkRange, ChunkWriter, NullNote, RawChunk
from ingestion.sources import SourceError
from ingestion.sources.mysql.server import TIMEOUTS, OpenServer

MAX_WAITS = 200
"""For a transaction that is in the binlog to be seen by a snapshot: the server is about to end its commit."""


class ReadChunk(NamedTuple):
    """`content`: of the file that it lands as; None: it does not. `source_rows`: how many rows the server has handed over for it."""

    chunk: RawChunk
    content: bytes | None
    source_rows: int


@dataclass(frozen=True)
class ChunkReader:
    """`rows`: of a chunk. `least`: the transaction that all chunks are to have seen."""

    table: CapturedTable
    rows: int
    least: int
    is_landing: bool

    @property
    def key(self) -> tuple[str, ...]:
        """Of the ranges: that of the table, by which the server orders its rows."""
        return self.table.definition.primary_key or self.table.record_key

    def next_chunk(self, server: OpenServer, after: EncodedKey | None) -> ReadChunk:
        def read(columns: Any) -> SnapshotChunk:
            return read_chunk(
                server.connection, self.table.definition, columns, self.key, after=_decoded(after), rows=self.rows
            )

        return self._read(server, after, read)

    def end_of_next(self, server: OpenServer, after: EncodedKey | None) -> EncodedKey | None:
        """Its last key; None: it is the last chunk."""
        with server.source.at_most(TIMEOUTS.silence):
            end = end_of_chunk(
                server.connection, self.table.definition, self.key, after=_decoded(after), rows=self.rows
            )
        return None if end is None else encode_key(end)

    def range(self, server: OpenServer, after: EncodedKey | None, upto: EncodedKey | None) -> ReadChunk:
        """Of the rows that it has when it is read: some more or fewer than when its end was looked up."""

        def read(columns: Any) -> SnapshotChunk:
            return read_range(
                server.connection,
                self.table.definition,
                columns,
                self.key,
                after=_decoded(after),
                upto=_decoded(upto),
            )

        return self._read(server, after, read)

    def rows_of(self, server: OpenServer, keys: Sequence[Key]) -> ReadChunk:
        """Those that are there, by the record key."""

        def read(columns: Any) -> SnapshotChunk:
            return read_keys(server.connection, self.table.definition, columns, self.table.record_key, keys)

        return self._read(server, None, read)

    def _read(self, server: OpenServer, after: EncodedKey | None, read: Callable[[Any], SnapshotChunk]) -> ReadChunk:
        """That has seen what was in the binlog when the load began: what the changelog had then is in its rows."""
        left_out = self.table.spec.hidden.left_out
        wanted = [column for column in self.table.definition.columns if column.name not in left_out]
        for _ in range(MAX_WAITS):
            with server.source.at_most(TIMEOUTS.silence):
                chunk = read(wanted)
            if chunk.sequence >= self.least:
                return self.landing(chunk, after)
        raise not_seen_yet(self.table.spec, chunk.sequence, self.least)

    def landing(self, chunk: SnapshotChunk, after: EncodedKey | None) -> ReadChunk:
        """With what lands of it."""
        read_at = datetime.now(UTC)
        # Several threads read at once, and the table says of the row at hand what it has made null.
        table = replace(self.table, misfits={})
        range_ = ChunkRange(self.key, after, None if chunk.last_key is None else encode_key(chunk.last_key))
        writer = ChunkWriter(table.schema) if self.is_landing else None
        columns: dict[str, list[object]] = {name: [] for name in table.schema.columns}
        unreadable: list[tuple[str, str]] = []
        nulled: dict[int, NullNote] = {}
        rows = 0
        for row in chunk.rows:
            try:
                values = table.values_of(row)
                note = _note_of(table, row)
                if writer is not None:
                    writer.add(values, note)
            except ValueError as problem:
                unreadable.append((repr(table.shown(row)), f"A value of the row cannot be read: {problem}"))
            else:
                if note is not None:
                    nulled[rows] = note
                rows += 1
                for name, column in columns.items():
                    column.append(values[name])
        content = None
        if writer is not None:
            for each in unreadable:
                writer.add_unreadable(*each)
            content = writer.content(range_, chunk.sequence, read_at)
        schema, version = table.schema.row_columns, table.schema.version
        raw = RawChunk(range_, chunk.sequence, read_at, schema, version, columns, unreadable, nulled)
        return ReadChunk(raw, content, len(chunk.rows))


def _note_of(table: CapturedTable, row: Row) -> NullNote | None:
    if not table.misfits:
        return None
    return NullNote(next(iter(table.misfits)), null_reason([*table.misfits.values()]), repr(table.shown(row)))


def _decoded(key: EncodedKey | None) -> Key | None:
    return None if key is None else decode_key(key)


def not_seen_yet(spec: CaptureSpec, sequence: int, least: int | None) -> SourceError:
    return SourceError(
        f"The server of `{spec.database}.{spec.table}` shows its rows as they were after transaction {sequence:,}, and {least or 0:,} is in "
        "its binlog. Nothing was read; the load goes on when it is run again."
    )
