"""A table of a MariaDB server: its rows come chunk by chunk from the server, and its changes from the changelog that the server's tap writes.

A load begins where the changelog ends, and reads nothing older than what is there already: so nothing lies between the rows and their changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ingestion.capture.snapshot.definitions import named_table
from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.domain.batch_limits import UNLIMITED, BatchLimits, BatchMeter
from ingestion.domain.checkpoint import Position
from ingestion.domain.log_moves import LOAD, LOADED_AT, LOADED_FROM, LOG
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN, metadata_type
from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.heatpipe.decoder import Decoder
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.reading import EventLimits, TopicBatch
from ingestion.sources import LoggedEvents, LogReading, SourceConfig, SourceError, SourceReading
from ingestion.sources.mysql.server import MysqlServer
from ingestion.sources.mysql.snapshot import SnapshotWalk

_KEY, _LEAST = "key", "least"
METADATA = SchemaColumn(METADATA_COLUMN, str(metadata_type(bytes)))


class MysqlSource:
    """`config.options`: those of the topic (`EventTopic.as_options`)."""

    def __init__(self, config: SourceConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._config, self._clock = config, clock
        self._topic = EventTopic.from_options(config.options)
        self._server = MysqlServer(config.url)

    def schema(self) -> Schema:
        with self._server.opened() as server:
            table = server.captured_table(self._spec, self._topic)
        return Schema((*table.schema.row_columns, METADATA))

    def snapshot(
        self,
        *,
        upto: datetime | None = None,
        only: Mapping[str, Sequence[str]] | None = None,
        after: Position | None = None,
        limits: BatchLimits = UNLIMITED,
    ) -> SourceReading:
        if only:
            raise SourceError(
                f"`{self._config.object}` is captured: its changes are in the lake already, so single partitions are not read again. "
                "Bootstrap it with `replace` where rows are missing."
            )
        load = self._topic.load
        start = self._beginning() if after is None else after
        if start[LOAD] != load:
            raise SourceError(
                f"The load of `{self._config.object}` has read a part of the table, and then its capture was stopped: what changed there since is nowhere. "
                "Bootstrap it with `replace`."
            )
        meter = BatchMeter(limits, self._clock)
        walk = SnapshotWalk(self._server, self._spec, self._topic, self._config, start[_KEY], start[_LEAST], meter)

        def position() -> Position:
            if not walk.has_more:
                return {LOG: start[LOG], LOAD: load, LOADED_FROM: start[LOG], LOADED_AT: start.get(LOADED_AT)}
            return {**start, _KEY: walk.last_key, _LEAST: walk.least}

        total = None if after is not None else walk.estimated_rows
        return SourceReading(
            walk.batches(METADATA), position, total=total or (lambda: None), has_more=lambda: walk.has_more
        )

    def _beginning(self) -> Position:
        """Of a load: what the log has by now is in the rows. The time first, so that it is not later than that."""
        began_at = datetime.now(UTC).isoformat()
        return {LOG: self._topic.end(), _KEY: None, _LEAST: None, LOAD: self._topic.load, LOADED_AT: began_at}

    def changes(
        self, position: Position, *, upto: datetime | None = None, limits: BatchLimits = UNLIMITED
    ) -> SourceReading:
        if LOG not in position:
            raise SourceError(
                f"`{self._config.object}` was loaded by its cursor column, so nothing says from where on its changelog is to be read. Bootstrap it with `replace`."
            )
        reading = _TopicReading(self._topic, self._config, position, limits)
        return LogReading(reading, reading.position, has_more=lambda: reading.has_more, lag=reading.lag)

    @property
    def _spec(self) -> CaptureSpec:
        database, table = named_table(self._config.object, self._server.database)
        return CaptureSpec(self._topic.topic, database, table, record_key=self._config.key_columns)


class _TopicReading:
    """One batch of events, or none."""

    def __init__(self, topic: EventTopic, config: SourceConfig, start: Mapping[str, Any], limits: BatchLimits) -> None:
        self._topic, self._position, self._start = topic, start, start[LOG]
        self._decoder = Decoder(topic.topic, config.key_columns, bytes, topic.schema_of)
        usual = EventLimits()
        self._limits = EventLimits(
            min(usual.events, limits.rows or usual.events), min(usual.bytes, limits.bytes or usual.bytes)
        )
        self._after: Mapping[str, Any] = self._start
        self._is_done = self.has_more = False

    def __iter__(self) -> _TopicReading:
        return self

    def __next__(self) -> LoggedEvents:
        if self._is_done:
            raise StopIteration
        self._is_done = True
        batch, self._after = self._topic.read(self._start, self._decoder, self._limits)
        self.has_more = batch.has_more or batch.waits_for_schema is not None
        if not batch.read:
            raise StopIteration
        return self._logged(batch)

    def _logged(self, batch: TopicBatch) -> LoggedEvents:
        versions = {each.schema.version: each.schema for each in batch.decoded}
        columns = versions[max(versions)].row_columns if versions else Schema(())
        return LoggedEvents(
            {},
            schema=Schema((*columns, METADATA)),
            schema_version=0,
            decoded=batch.decoded,
            broken=batch.broken,
            columns_of=self._topic.columns_of,
            logged_hours=batch.logged_hours,
        )

    def position(self) -> Position:
        return {**self._position, LOG: self._after}

    def lag(self) -> int:
        return self._topic.lag(self._start)
