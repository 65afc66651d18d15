"""The changes of a captured dataset, from the changelog: what all sources share whose changes a tap takes there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingestion.domain.batch_limits import BatchLimits
from ingestion.domain.checkpoint import Position
from ingestion.domain.log_moves import LOG, SCHEMA_VERSION
from ingestion.domain.merging.column_renames import renamed_event
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN, metadata_type
from ingestion.domain.schema import Schema, SchemaColumn, evolve_schema
from ingestion.heatpipe.decoder import Decoder
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.reading import EventLimits, TopicBatch
from ingestion.sources import AcceptedColumns, LoggedEvents, LogReading, SourceConfig

ReferenceType = type[bytes | int]


def metadata_column(reference_type: ReferenceType = bytes) -> SchemaColumn:
    """What comes on top of a table's columns."""
    return SchemaColumn(METADATA_COLUMN, str(metadata_type(reference_type)))


def read_changes(
    topic: EventTopic,
    config: SourceConfig,
    position: Position,
    limits: BatchLimits,
    reference_type: ReferenceType = bytes,
) -> LogReading:
    reading = _TopicReading(topic, config, position, limits, reference_type)
    accepted = accepted_columns(topic, position)
    return LogReading(reading, reading.position, has_more=lambda: reading.has_more, lag=reading.lag, accepted=accepted)


def accepted_columns(topic: EventTopic, position: Position) -> AcceptedColumns:
    """Whoever only asks whether there is something new knows no schemas, and is told whether one is due."""
    is_due = topic.accepted > position.get(SCHEMA_VERSION, 0)
    try:
        accepted = [each.row_columns for each in topic.event_schemas if each.version == topic.accepted]
    except (LookupError, TypeError, ValueError):
        accepted = []  # somebody has registered types that the lake has no name for
    return AcceptedColumns(topic.accepted, accepted[0] if accepted else None, is_due)


def note_of_version(topic: EventTopic, columns: Schema | None) -> Position:
    """Of a table that was loaded with `columns`: what its position says of the version that it follows. Nothing where that has others."""
    accepted = accepted_columns(topic, {})
    if accepted.columns is None or columns is None or evolve_schema(columns, accepted.columns).target != columns:
        return {}
    return {SCHEMA_VERSION: accepted.version}


class _TopicReading:
    """One batch of events, or none."""

    def __init__(
        self,
        topic: EventTopic,
        config: SourceConfig,
        start: Mapping[str, Any],
        limits: BatchLimits,
        reference_type: ReferenceType,
    ) -> None:
        self._topic, self._position, self._start = topic, start, start[LOG]
        self._decoder = Decoder(topic.topic, config.key_columns, reference_type, topic.schema_of)
        self._metadata = metadata_column(reference_type)
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
        renames = self._topic.renames
        batch.decoded = [each._replace(event=renamed_event(each.event, renames)) for each in batch.decoded]
        versions = {each.schema.version: each.schema for each in batch.decoded}
        columns = versions[max(versions)].row_columns if versions else Schema(())
        return LoggedEvents(
            {},
            schema=Schema((*columns, self._metadata)),
            schema_version=0,
            decoded=batch.decoded,
            broken=batch.broken,
            columns_of=self._topic.columns_of,
            logged_hours=batch.logged_hours,
        )

    def position(self) -> Position:
        version = max(self._topic.accepted, self._position.get(SCHEMA_VERSION, 0))
        return {**self._position, LOG: self._after} | ({SCHEMA_VERSION: version} if version else {})

    def lag(self) -> int:
        return self._topic.lag(self._start)
