"""The rows of a table in chunks of its key: those that have landed as files, and then the source's, each of which lands before it is handed over."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import sqlalchemy as sa

from ingestion.capture.snapshot.chunks import SnapshotChunk, read_chunk
from ingestion.capture.snapshot.key_position import EncodedKey, decode_key, encode_key
from ingestion.capture.tap.captured_table import CapturedTable, CaptureSpec
from ingestion.domain.batch_limits import BatchMeter
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import SchemaColumn
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.raw_chunks.chunk_file import ChunkRange, ChunkWriter, DamagedChunk, RawChunk
from ingestion.raw_chunks.folders import RawLoad
from ingestion.sources import EventBatch, SourceConfig, SourceError
from ingestion.sources.mysql.chunk_batches import batch_of, has_room_for
from ingestion.sources.mysql.server import TIMEOUTS, MysqlServer, OpenServer

logger = logging.getLogger(__name__)
KEY, LEAST, CHUNKS, ROWS = "key", "least", "chunks", "rows"
"""Of the place of a load: the last key that was read, the transaction that all chunks have seen, and how many chunks and rows were read."""
MAX_WAITS = 200
"""For a transaction that is in the binlog to be seen by a snapshot: the server is about to end its commit."""
_ROWS = sa.text(
    "SELECT table_rows FROM information_schema.tables WHERE table_schema = :database AND table_name = :table"
)


class SnapshotWalk:
    """Reads on from `start` until the meter is full or the table ends: after its `key`, and from chunks that have seen its `least` transaction; none: that
    which is the newest now. `load`: where chunks land; None: nowhere.

    Asked afterwards: `has_more`, `place`."""

    def __init__(
        self,
        server: MysqlServer,
        spec: CaptureSpec,
        topic: EventTopic,
        config: SourceConfig,
        start: Position,
        meter: BatchMeter,
        load: RawLoad | None = None,
    ) -> None:
        self._server, self._spec, self._topic, self._config, self._meter = server, spec, topic, config, meter
        self._start, self._load = start, load
        self.last_key: EncodedKey | None = start.get(KEY)
        self.least: int | None = start.get(LEAST)
        self._chunks, self._rows = start.get(CHUNKS, 0), start.get(ROWS, 0)
        self.has_more = False

    def place(self) -> Position:
        return {KEY: self.last_key, LEAST: self.least, CHUNKS: self._chunks, ROWS: self._rows}

    def batches(self, metadata: SchemaColumn) -> Iterator[EventBatch]:
        """`metadata`: the column that comes on top of the table's."""
        with self._server.opened() as server:
            self._begin(server)
            table = server.captured_table(self._spec, self._topic)
            schema = table.schema.row_columns
            # Of another key than that of the ranges two of them may have the same: then all is one commit.
            is_split = {*table.record_key} == {*_range_key(table)}
            while True:
                landed = self._landed(table)
                chunk = landed or self._read(server, table)
                self._count(chunk)
                if chunk.rows or chunk.unreadable:
                    is_landed = landed is not None
                    batch = batch_of(
                        chunk, table.record_key, schema, table.schema.version, metadata, is_landed=is_landed
                    )
                    self._meter.add(batch.rows, batch.estimated_bytes)
                    yield batch
                if self.last_key is None:
                    self.has_more = False
                    self._end(table)
                    return
                self.has_more = is_split and self._meter.is_full()
                if self.has_more:
                    return

    def _begin(self, server: OpenServer) -> None:
        if self.least is None:
            self.least = server.newest_sequence()
            if self._load is not None:
                self._load.begin({**self._start, LEAST: self.least})

    def _count(self, chunk: RawChunk) -> None:
        self._chunks += 1
        self._rows += chunk.rows + len(chunk.unreadable)
        self.last_key = chunk.range.last_key

    def _end(self, table: CapturedTable) -> None:
        if self._load is not None:
            columns, version = table.schema.row_columns.types, table.schema.version
            self._load.end(self._chunks, {ROWS: self._rows, "schema": columns, "schema_version": version})

    def _landed(self, table: CapturedTable) -> RawChunk | None:
        """The next chunk as it was read before. None: it was not, or it is of another range, or of columns for which the table has no room now."""
        try:
            chunk = None if self._load is None else self._load.chunk(self._chunks)
        except DamagedChunk as problem:
            logger.warning("%s. It is read again.", problem)
            return None
        if chunk is None or (tuple(chunk.range.key), chunk.range.after) != (_range_key(table), self.last_key):
            return None
        has_seen_enough = chunk.sequence >= (self.least or 0)
        return chunk if has_seen_enough and has_room_for(table.schema.row_columns, chunk.schema) else None

    def _read(self, server: OpenServer, table: CapturedTable) -> RawChunk:
        """Of the source."""
        chunk, read_at = self._chunk(server, table), datetime.now(UTC)
        self._config.on_rows_read(len(chunk.rows))
        last_key = None if chunk.last_key is None else encode_key(chunk.last_key)
        range_ = ChunkRange(_range_key(table), self.last_key, last_key)
        writer = None if self._load is None else ChunkWriter(table.schema)
        columns: dict[str, list[object]] = {name: [] for name in table.schema.columns}
        unreadable: list[tuple[str, str]] = []
        for row in chunk.rows:
            try:
                values = table.values_of(row)
                if writer is not None:
                    writer.add(values)
            except ValueError as problem:
                unreadable.append((repr(table.shown(row)), f"A value of the row cannot be read: {problem}"))
            else:
                for name, column in columns.items():
                    column.append(values[name])
        if writer is not None and self._load is not None:
            for each in unreadable:
                writer.add_unreadable(*each)
            self._load.land(self._chunks, writer.content(range_, chunk.sequence, read_at))
        schema, version = table.schema.row_columns, table.schema.version
        return RawChunk(range_, chunk.sequence, read_at, schema, version, columns, unreadable)

    def _chunk(self, server: OpenServer, table: CapturedTable) -> SnapshotChunk:
        """That has seen what was in the binlog when the load began: what the changelog had then is in its rows."""
        definition, left_out = table.definition, self._spec.hidden.left_out
        wanted = [column for column in definition.columns if column.name not in left_out]
        after = None if self.last_key is None else decode_key(self.last_key)
        for _ in range(MAX_WAITS):
            with server.source.at_most(TIMEOUTS.silence):
                chunk = read_chunk(
                    server.connection,
                    definition,
                    wanted,
                    _range_key(table),
                    after=after,
                    rows=self._config.chunk_rows,
                )
            if self.least is None or chunk.sequence >= self.least:
                return chunk
        raise not_seen_yet(self._spec, chunk.sequence, self.least)

    def estimated_rows(self) -> int | None:
        named = {"database": self._spec.database, "table": self._spec.table}
        with self._server.opened() as server, server.source.at_most(TIMEOUTS.silence):
            rows = server.connection.execute(_ROWS, named).scalar()
        return None if rows is None else int(rows)


def _range_key(table: CapturedTable) -> tuple[str, ...]:
    return table.definition.primary_key or table.record_key


def not_seen_yet(spec: CaptureSpec, sequence: int, least: int | None) -> SourceError:
    return SourceError(
        f"The server of `{spec.database}.{spec.table}` shows its rows as they were after transaction {sequence:,}, and {least or 0:,} is in "
        "its binlog. Nothing was read; the load goes on when it is run again."
    )
