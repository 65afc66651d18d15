"""A table of a MariaDB server: its rows come chunk by chunk from the server, and its changes from the changelog that the server's tap writes.

A load begins where the changelog ends, and reads nothing older than what is there already: so nothing lies between the rows and their changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from ingestion.capture.snapshot.definitions import named_table
from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.domain.batch_limits import UNLIMITED, BatchLimits, BatchMeter
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import Schema
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.sources import SourceConfig, SourceError, SourceReading
from ingestion.sources.logged_changes import LOAD, LOG, METADATA, read_changes
from ingestion.sources.mysql.server import MysqlServer
from ingestion.sources.mysql.snapshot import SnapshotWalk

_KEY, _LEAST = "key", "least"


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
        start: Position = {LOG: self._topic.end(), _KEY: None, _LEAST: None, LOAD: load} if after is None else after
        if start[LOAD] != load:
            raise SourceError(
                f"The load of `{self._config.object}` has read a part of the table, and then its capture was stopped: what changed there since is nowhere. "
                "Bootstrap it with `replace`."
            )
        meter = BatchMeter(limits, self._clock)
        walk = SnapshotWalk(self._server, self._spec, self._topic, self._config, start[_KEY], start[_LEAST], meter)

        def position() -> Position:
            if not walk.has_more:
                return {LOG: start[LOG], LOAD: load}
            return {LOG: start[LOG], _KEY: walk.last_key, _LEAST: walk.least, LOAD: load}

        total = None if after is not None else walk.estimated_rows
        return SourceReading(
            walk.batches(METADATA), position, total=total or (lambda: None), has_more=lambda: walk.has_more
        )

    def changes(
        self, position: Position, *, upto: datetime | None = None, limits: BatchLimits = UNLIMITED
    ) -> SourceReading:
        if LOG not in position:
            raise SourceError(
                f"`{self._config.object}` was loaded by its cursor column, so nothing says from where on its changelog is to be read. Bootstrap it with `replace`."
            )
        return read_changes(self._topic, self._config, position, limits)

    @property
    def _spec(self) -> CaptureSpec:
        database, table = named_table(self._config.object, self._server.database)
        return CaptureSpec(self._topic.topic, database, table, record_key=self._config.key_columns)
