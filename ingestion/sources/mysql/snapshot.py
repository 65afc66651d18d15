"""The rows of a table in chunks of its key: those that have landed as files, and then the source's, each of which lands before it is handed over."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack

import sqlalchemy as sa

from ingestion.capture.snapshot.key_position import EncodedKey
from ingestion.capture.tap.captured_table import CapturedTable, CaptureSpec
from ingestion.domain.batch_limits import BatchMeter
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.raw_chunks.chunk_file import DamagedChunk, RawChunk
from ingestion.raw_chunks.folders import RawLoad
from ingestion.sources import EventBatch, SourceConfig
from ingestion.sources.mysql.chunk_batches import batch_of, has_room_for
from ingestion.sources.mysql.chunk_reading import ChunkReader, ReadChunk
from ingestion.sources.mysql.read_ahead import ReadAhead
from ingestion.sources.mysql.server import TIMEOUTS, MysqlServer, OpenServer

logger = logging.getLogger(__name__)
KEY, LEAST, CHUNKS, ROWS = "key", "least", "chunks", "rows"
"""Of the place of a load: the last key that was read, the transaction that all chunks have seen, and how many chunks and rows were read."""
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
        self.columns: Schema | None = None

    def place(self) -> Position:
        return {KEY: self.last_key, LEAST: self.least, CHUNKS: self._chunks, ROWS: self._rows}

    def batches(self, metadata: SchemaColumn) -> Iterator[EventBatch]:
        """`metadata`: the column that comes on top of the table's."""
        with ExitStack() as stack:
            server = stack.enter_context(self._server.opened())
            least = self._begin(server)
            table = server.captured_table(self._spec, self._topic)
            schema = self.columns = table.schema.row_columns
            reader = ChunkReader(table, self._config.chunk_rows, least, self._load is not None)
            others = [stack.enter_context(self._server.opened()) for _ in range(self._config.readers - 1)]
            ahead = stack.enter_context(ReadAhead(reader, [server, *others]))
            # Of another key than that of the ranges two of them may have the same: then all is one commit.
            is_split = {*table.record_key} == {*reader.key}
            while True:
                landed = None if ahead.has_begun else self._landed(reader)
                chunk = landed or self._take(ahead.next(self.last_key), self._chunks)
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
                    self._land_rest(ahead)
                    return

    def _begin(self, server: OpenServer) -> int:
        if self.least is None:
            self.least = server.newest_sequence()
            if self._load is not None:
                self._load.begin({**self._start, LEAST: self.least})
        return self.least

    def _count(self, chunk: RawChunk) -> None:
        self._chunks += 1
        self._rows += chunk.rows + len(chunk.unreadable)
        self.last_key = chunk.range.last_key

    def _take(self, read: ReadChunk, number: int) -> RawChunk:
        """Lands it, and then waits where the source is to be spared: whoever ends meanwhile has it."""
        if self._load is not None and read.content is not None:
            self._load.land(number, read.content)
        self._config.on_rows_read(read.source_rows)
        return read.chunk

    def _land_rest(self, ahead: ReadAhead) -> None:
        """The next reading begins with what was read ahead."""
        if self._load is not None:
            for number, read in enumerate(ahead.rest(), self._chunks):
                self._take(read, number)

    def _end(self, table: CapturedTable) -> None:
        if self._load is not None:
            columns, version = table.schema.row_columns.types, table.schema.version
            self._load.end(self._chunks, {ROWS: self._rows, "schema": columns, "schema_version": version})

    def _landed(self, reader: ChunkReader) -> RawChunk | None:
        """The next chunk as it was read before. None: it was not, or it is of another range, or of columns for which the table has no room now."""
        try:
            chunk = None if self._load is None else self._load.chunk(self._chunks)
        except DamagedChunk as problem:
            logger.warning("%s. It is read again.", problem)
            return None
        if chunk is None or (tuple(chunk.range.key), chunk.range.after) != (reader.key, self.last_key):
            return None
        is_fit = has_room_for(reader.table.schema.row_columns, chunk.schema)
        return chunk if is_fit and chunk.sequence >= reader.least else None

    def estimated_rows(self) -> int | None:
        named = {"database": self._spec.database, "table": self._spec.table}
        with self._server.opened() as server, server.source.at_most(TIMEOUTS.silence):
            rows = server.connection.execute(_ROWS, named).scalar()
        return None if rows is None else int(rows)
