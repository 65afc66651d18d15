"""The rows of a table in chunks of its key, each with the metadata that says after which transaction it was so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from ingestion.capture.binlog.events import Row
from ingestion.capture.null_instead import null_reason
from ingestion.capture.snapshot.chunks import SnapshotChunk, read_chunk
from ingestion.capture.snapshot.key_position import EncodedKey, decode_key, encode_key
from ingestion.capture.tap.captured_table import CapturedTable, CaptureSpec
from ingestion.capture.tap.position import reference_key_after
from ingestion.domain.batch_limits import BatchMeter
from ingestion.domain.checkpoint import Position
from ingestion.domain.merging.events import Version
from ingestion.domain.merging.row_state import ColumnState, RowState
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN, LatestEvent, metadata_of
from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.row_keys import row_key_text
from ingestion.sources import EventBatch, NulledRow, SourceConfig, SourceError, UnreadableRow
from ingestion.sources.mysql.server import TIMEOUTS, MysqlServer, OpenServer

SNAPSHOT_SOURCE = "snapshot"
_KEY, _LEAST = "key", "least"
MAX_WAITS = 200
"""For a transaction that is in the binlog to be seen by a snapshot: the server is about to end its commit."""
_ROWS = sa.text(
    "SELECT table_rows FROM information_schema.tables WHERE table_schema = :database AND table_name = :table"
)


class SnapshotWalk:
    """Reads on from `start` until the meter is full or the table ends: after its `key`, and from chunks that have seen its `least` transaction; none: that
    which is the newest now.

    Asked afterwards: `has_more`, `place`."""

    def __init__(
        self,
        server: MysqlServer,
        spec: CaptureSpec,
        topic: EventTopic,
        config: SourceConfig,
        start: Position,
        meter: BatchMeter,
    ) -> None:
        self._server, self._spec, self._topic, self._config, self._meter = server, spec, topic, config, meter
        self.last_key: EncodedKey | None = start.get(_KEY)
        self.least: int | None = start.get(_LEAST)
        self.has_more = False
        self.columns: Schema | None = None

    def place(self) -> Position:
        return {_KEY: self.last_key, _LEAST: self.least}

    def batches(self, metadata: SchemaColumn) -> Iterator[EventBatch]:
        """`metadata`: the column that comes on top of the table's."""
        with self._server.opened() as server:
            if self.least is None:
                self.least = server.newest_sequence()
            table = server.captured_table(self._spec, self._topic)
            self.columns = table.schema.row_columns
            schema = Schema((*self.columns, metadata))
            # Of another key than that of the ranges two of them may have the same: then all is one commit.
            is_split = {*table.record_key} == {*(table.definition.primary_key or table.record_key)}
            while True:
                chunk = self._chunk(server, table)
                self._config.on_rows_read(len(chunk.rows))
                self.last_key = None if chunk.last_key is None else encode_key(chunk.last_key)
                if chunk.rows:
                    batch = _batch(chunk, table, schema)
                    self._meter.add(batch.rows, batch.estimated_bytes)
                    yield batch
                if self.last_key is None:
                    self.has_more = False
                    return
                self.has_more = is_split and self._meter.is_full()
                if self.has_more:
                    return

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
                    definition.primary_key or table.record_key,
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


def not_seen_yet(spec: CaptureSpec, sequence: int, least: int | None) -> SourceError:
    return SourceError(
        f"The server of `{spec.database}.{spec.table}` shows its rows as they were after transaction {sequence:,}, and {least or 0:,} is in "
        "its binlog. Nothing was read; the load goes on when it is run again."
    )


def _batch(chunk: SnapshotChunk, table: CapturedTable, schema: Schema) -> EventBatch:
    rows: list[dict[str, Any]] = []
    unreadable: list[UnreadableRow] = []
    nulled: list[NulledRow] = []
    for row in chunk.rows:
        try:
            rows.append(dict(table.values_of(row)))
        except ValueError as problem:
            unreadable.append(_unreadable(row, table, problem))
        if table.misfits:
            name, reason = next(iter(table.misfits)), null_reason([*table.misfits.values()])
            nulled.append(NulledRow(name, reason, repr(table.shown(row))))
    names = table.schema.columns
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in names}
    keys = [row_key_text(tuple(row[name] for name in table.record_key)) for row in rows]
    columns[METADATA_COLUMN] = _metadata(keys, chunk.sequence, table)
    unfit = (tuple(unreadable), tuple(nulled))
    return EventBatch(columns, *unfit, schema=schema, schema_version=table.schema.version)


def _unreadable(row: Row, table: CapturedTable, problem: ValueError) -> UnreadableRow:
    return UnreadableRow(repr(table.shown(row)), f"A value of the row cannot be read: {problem}")


def _metadata(keys: Sequence[str], sequence: int, table: CapturedTable) -> pa.Array:
    """All alike but for the key."""
    version = Version(reference_key_after(sequence), "", (sequence,))
    state = RowState(dict.fromkeys(table.schema.columns, ColumnState(None, version)))
    latest = LatestEvent(SNAPSHOT_SOURCE, None, datetime.now(UTC), table.schema.version)
    registered = table.schema.columns if table.schema.version else ()
    each = pa.array([metadata_of("", state, latest, registered)]).take(pa.array([0] * len(keys), pa.int64()))
    fields = {name: each.field(name) for name in each.type.names} | {"row_key": pa.array(keys, pa.string())}
    return pa.StructArray.from_arrays([*fields.values()], names=[*fields])
