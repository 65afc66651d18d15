"""A topic of somebody else's Kafka: a load reads no rows, and begins where the changelog has the first message that the tap took for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from ingestion.domain.batch_limits import UNLIMITED, BatchLimits
from ingestion.domain.checkpoint import Position
from ingestion.domain.log_moves import LOAD, LOADED_AT, LOADED_FROM, LOG
from ingestion.domain.schema import Schema
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.sources import SourceConfig, SourceError, SourceReading
from ingestion.sources.logged_changes import metadata_column, note_of_version, read_changes


class KafkaSource:
    """`config.options`: those of the topic of the changelog (`EventTopic.as_options`). It asks nothing of the cluster."""

    def __init__(self, config: SourceConfig) -> None:
        self._config = config
        self._topic = EventTopic.from_options(config.options)

    def schema(self) -> Schema:
        """Of the messages that the tap has seen."""
        versions = self._topic.event_schemas
        if not versions:
            raise SourceError(
                f"No message of the topic `{self._config.object}` was captured yet, so its columns are not known. The load goes on when it is run again; "
                "*Tap servers* in the console says how the tap goes."
            )
        return Schema((*versions[-1].row_columns, metadata_column()))

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
                f"`{self._config.object}` is a topic, so single partitions of the lake are not read again. Bootstrap the dataset with `replace`."
            )
        begins_at, began = self._topic.begins_at, datetime.now(UTC).isoformat()
        versions = self._topic.event_schemas
        position: Position = {
            LOG: begins_at,
            LOAD: self._topic.load,
            LOADED_FROM: begins_at,
            LOADED_AT: began,
            **note_of_version(self._topic, versions[-1].row_columns if versions else None),
        }
        return SourceReading(iter(()), lambda: position, total=lambda: 0, begins_empty=True)

    def changes(
        self, position: Position, *, upto: datetime | None = None, limits: BatchLimits = UNLIMITED
    ) -> SourceReading:
        if LOG not in position:
            raise SourceError(
                f"`{self._config.object}` was loaded in another way, so nothing says from where on its changelog is to be read. Bootstrap it with `replace`."
            )
        return read_changes(self._topic, self._config, position, limits)
