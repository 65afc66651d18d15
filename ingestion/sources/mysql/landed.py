"""A load that reads what an earlier one has landed: it asks nothing of the source, and its changes go on from where that load began."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ingestion.domain.batch_limits import BatchMeter
from ingestion.domain.checkpoint import Position
from ingestion.domain.log_moves import LOAD, LOG
from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.raw_chunks.chunk_file import DamagedChunk, RawChunk
from ingestion.raw_chunks.folders import RawFolder, RawLoad
from ingestion.sources import EventBatch, SourceError
from ingestion.sources.mysql.chunk_batches import batch_of, has_room_for
from ingestion.sources.mysql.snapshot import CHUNKS, KEY, LEAST, ROWS

READ_THE_SOURCE = "Bootstrap it with `replace` and without `from_chunks`: then the table is read from its source."


class LandedWalk:
    """As `SnapshotWalk`, of the chunks of `load`."""

    def __init__(self, load: RawLoad, record_key: Sequence[str], start: Position, meter: BatchMeter) -> None:
        self._load, self._record_key, self._meter, self._start = load, record_key, meter, start
        self.least: int | None = start.get(LEAST)
        self._last_key = start.get(KEY)
        self._chunks: int = start.get(CHUNKS, 0)
        self._rows: int = start.get(ROWS, 0)
        self.has_more = False
        self.columns: Schema | None = None

    def place(self) -> Position:
        return {KEY: self._last_key, LEAST: self.least, CHUNKS: self._chunks, ROWS: self._rows}

    def estimated_rows(self) -> int | None:
        return int(self._facts()[ROWS])

    def schema(self) -> Schema:
        """For all of its rows."""
        return Schema.of(self._facts()["schema"])

    def batches(self, metadata: SchemaColumn) -> Iterator[EventBatch]:
        facts = self._facts()
        schema, version = Schema.of(facts["schema"]), facts["schema_version"]
        self.columns = schema
        is_split = {*self._chunk(0).range.key} == {*self._record_key}
        while self._chunks < facts[CHUNKS]:
            chunk = self._chunk(self._chunks)
            if chunk.range.after != self._last_key or not has_room_for(schema, chunk.schema):
                raise self._unfit(f"chunk {self._chunks} does not follow the one before it")
            self._chunks += 1
            self._rows += chunk.rows + len(chunk.unreadable)
            self._last_key = chunk.range.last_key
            if chunk.rows or chunk.unreadable:
                batch = batch_of(chunk, self._record_key, schema, version, metadata, is_landed=True)
                self._meter.add(batch.rows, batch.estimated_bytes)
                yield batch
            self.has_more = is_split and self._last_key is not None and self._meter.is_full()
            if self.has_more:
                return

    def _facts(self) -> dict[str, Any]:
        facts = self._load.end_facts()
        if facts is None:
            raise self._unfit("they were removed")
        return facts

    def _chunk(self, number: int) -> RawChunk:
        try:
            chunk = self._load.chunk(number)
        except DamagedChunk as problem:
            raise SourceError(f"{problem}. {READ_THE_SOURCE}") from problem
        if chunk is None:
            raise self._unfit(f"chunk {number} is gone")
        return chunk

    def _unfit(self, why: str) -> SourceError:
        return SourceError(f"The raw chunks in {self._load.path} cannot be read again: {why}. {READ_THE_SOURCE}")


def load_to_read_again(folder: RawFolder, topic: EventTopic, table: str) -> RawLoad:
    """The newest that was read as a whole. Raises SourceError where there is none, or changes since it began are gone."""
    load = folder.newest_whole_load()
    beginning = None if load is None else load.beginning()
    if load is None or beginning is None:
        raise SourceError(
            f"No raw chunks of a whole load of `{table}` are kept in {folder.path}: they are removed when LAKEHUB_RAW_DAYS are over. {READ_THE_SOURCE}"
        )
    if beginning[LOAD] != topic.load:
        raise SourceError(
            f"The capture of `{table}` was stopped after its raw chunks were read: what changed there since is nowhere. {READ_THE_SOURCE}"
        )
    if gone := gone_changes(topic, beginning):
        raise SourceError(f"The raw chunks of `{table}` cannot be read again: {gone}. {READ_THE_SOURCE}")
    return load


def gone_changes(topic: EventTopic, beginning: Position) -> str:
    """Why what changed since a load began is not known any more; empty: the changelog has all of it."""
    for name, parts in topic.kept().items():
        for part, bounds in parts.items():
            begun = beginning[LOG].get(name, {}).get(part, 0)
            if begun < bounds.first:
                return f"the changelog keeps messages of `{name}` from {bounds.first:,} on, and the load began at {begun:,}"
    return ""
