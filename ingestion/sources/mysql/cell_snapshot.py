"""The rows that cells make, in chunks of their keys, each with the metadata that says which reference key each of its columns has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from ingestion.capture.binlog.events import Row
from ingestion.capture.null_instead import null_reason
from ingestion.capture.snapshot.cell_chunks import CellChunk, CellReader
from ingestion.capture.snapshot.key_position import EncodedKey, decode_key, encode_key
from ingestion.capture.tap.captured_cells import CapturedCells
from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.domain.batch_limits import BatchMeter
from ingestion.domain.checkpoint import Position
from ingestion.domain.merging.events import Version
from ingestion.domain.merging.row_state import ColumnState, RowState
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN, SNAPSHOT_SOURCE, LatestEvent, metadata_of
from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.heatpipe.broken_message import Defect, UnfitEvent
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.row_keys import row_key_text
from ingestion.heatpipe.unencoded_row import UnencodedRow
from ingestion.sources import EventBatch, NulledRow, SourceConfig, UnreadableRow
from ingestion.sources.mysql.chunk_reading import MAX_WAITS, not_seen_yet
from ingestion.sources.mysql.server import TIMEOUTS, MysqlServer, OpenServer
from lakehub.kernel.cells.cell_rows import Cell, CellRow, assembled
from lakehub.kernel.cells.fields import read_values

_KEY, _LEAST, _TYPES = "key", "least", "types"
MAX_ROWS = 5_000
"""Of a chunk: each has several cells."""


class CellWalk:
    """As `SnapshotWalk`, and it ends before rows that need other columns than those before them. Its place has the types that were met by then, too."""

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
        self._last_key: EncodedKey | None = start.get(_KEY)
        self.least: int | None = start.get(_LEAST)
        self._types: Mapping[str, str] = start.get(_TYPES) or {}
        self.has_more = False
        self.columns: Schema | None = None

    def place(self) -> Position:
        return {_KEY: self._last_key, _LEAST: self.least, _TYPES: dict(self._types)}

    def estimated_rows(self) -> None:
        """The server knows how many cells there are, and not of how many rows."""

    def batches(self, metadata: SchemaColumn) -> Iterator[EventBatch]:
        with self._server.opened() as server:
            if self.least is None:
                self.least = server.newest_sequence()
            table = server.captured_cells(self._spec, self._topic)
            reader = CellReader(server.connection, table.definition, table.columns)
            with server.source.at_most(TIMEOUTS.silence):
                table.take_types(self._types or table.sampled_types(reader.sample()))
            schema: Schema | None = None
            while True:
                chunk = self._chunk(server, reader)
                rows = _Rows(table, reader).of(chunk)
                self._types = table.types
                if schema is not None and table.schema.row_columns != schema:
                    self.has_more = True
                    return
                schema = self.columns = table.schema.row_columns
                self._config.on_rows_read(len(chunk.cells))
                self._last_key = None if chunk.last_key is None else encode_key(chunk.last_key)
                batch = rows.batch(Schema((*schema, metadata)))
                if batch.rows or batch.unreadable:
                    self._meter.add(batch.rows, batch.estimated_bytes)
                    yield batch
                self.has_more = self._last_key is not None and self._meter.is_full()
                if self._last_key is None or self.has_more:
                    return

    def _chunk(self, server: OpenServer, reader: CellReader) -> CellChunk:
        """That has seen what was in the binlog when the load began: what the changelog had then is in its cells."""
        after = None if self._last_key is None else decode_key(self._last_key)
        rows = max(1, min(self._config.chunk_rows, MAX_ROWS))
        for _ in range(MAX_WAITS):
            with server.source.at_most(TIMEOUTS.silence):
                chunk = reader.chunk(after, rows)
            if self.least is None or chunk.sequence >= self.least:
                return chunk
        raise not_seen_yet(self._spec, chunk.sequence, self.least)


@dataclass
class _Rows:
    """What the cells of a chunk make. A cell that is broken is put aside, and the one before it is the newest."""

    table: CapturedCells
    reader: CellReader
    unreadable: list[UnreadableRow] = field(default_factory=list)
    nulled: list[NulledRow] = field(default_factory=list)
    rows: Mapping[Any, CellRow] = field(default_factory=dict)
    sequence: int = 0

    def of(self, chunk: CellChunk) -> _Rows:
        self.sequence = chunk.sequence
        cells = [self._sound(*each) for each in zip(chunk.cells, chunk.identities, strict=True)]
        self.rows = assembled((cell for cell in cells if cell is not None), self.table.options)
        return self

    def _sound(self, row: Row, identity: tuple[Any, ...]) -> Cell | None:
        cell = self._read(row)
        if cell is not None or None in identity:
            return cell
        older = (self._read(each) for each in self.reader.older_cells(identity))
        return next((each for each in older if each is not None), None)

    def _read(self, row: Row) -> Cell | None:
        """None: it is put aside. Otherwise the schema has room for it."""
        try:
            cell = self.table.cell_of(row)
            if cell.column != self.table.options.delete:
                self.table.values_of(cell)
        except UnfitEvent as problem:
            self.unreadable.append(UnreadableRow(self._raw(row, problem), problem.labelled))
            return None
        if self.table.misfits:
            name, reason = next(iter(self.table.misfits)), null_reason([*self.table.misfits.values()])
            raw = self._raw(row, UnfitEvent(Defect.TYPE, reason, name))
            self.nulled.append(NulledRow(name, reason, raw))
        return cell

    def _raw(self, row: Row, problem: UnfitEvent) -> str:
        """As the tap puts it aside, so it is mended in the same way."""
        transaction = f"0-0-{self.sequence}"
        shown = self.table.shown(row)
        unencoded = UnencodedRow(transaction, 0, problem.defect, problem.field, str(problem), None, shown)
        return unencoded.to_json().decode()

    def batch(self, schema: Schema) -> EventBatch:
        there = {key: row for key, row in self.rows.items() if row.is_there}
        values = [self._values(key, row) for key, row in there.items()]
        columns: dict[str, Sequence[Any]] = {
            name: [each.get(name) for each in values] for name in self.table.schema.columns
        }
        columns[METADATA_COLUMN] = pa.array([self._metadata(key, row) for key, row in there.items()])
        unfit = (tuple(self.unreadable), tuple(self.nulled))
        return EventBatch(columns, *unfit, schema=schema, schema_version=self.table.schema.version)

    def _values(self, key: Any, row: CellRow) -> dict[str, Any]:
        values = {name: value for cell in row.columns.values() for name, value in self.table.values_of(cell).items()}
        return read_values(self.table.types, {self.table.columns.row_key: key, **values})

    def _metadata(self, key: Any, row: CellRow) -> dict[str, Any]:
        columns = {
            name: ColumnState(None, self._version(cell.ref_key))
            for cell in row.columns.values()
            for name in self.table.values_of(cell)
        }
        newest = max(each.version for each in columns.values())
        columns[self.table.columns.row_key] = ColumnState(None, newest)
        state = RowState(columns, None if row.deleted is None else self._version(row.deleted))
        latest = LatestEvent(SNAPSHOT_SOURCE, None, datetime.now(UTC), self.table.schema.version)
        registered = self.table.schema.columns if self.table.schema.version else ()
        return metadata_of(row_key_text((key,)), state, latest, registered)

    def _version(self, ref_key: int) -> Version:
        return Version(ref_key, "", (self.sequence,))
