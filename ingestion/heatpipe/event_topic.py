"""Where the events of a dataset are, as a job is told of it: a changelog, a topic, and the versions of its schema. It travels as plain texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from ingestion.changelog import CHANGELOGS, Bounds, Changelog, ChangelogConfig, ChangelogReader, ChangelogWriter
from ingestion.domain.merging.column_renames import ColumnRename, renamed_columns, renames_of_text, renames_to_text
from ingestion.heatpipe.decoder import Decoder, is_mended
from ingestion.heatpipe.reading import (
    ERRORS_SUFFIX,
    EventLimits,
    KnownSchemas,
    TopicBatch,
    lag_of,
    read_events,
    read_rejected,
)
from ingestion.heatpipe.subject_schema import SubjectSchema

_CLOCKS_APART = timedelta(minutes=1)
"""So far those of two writers of a topic may be from each other: its messages are about in the order of their times."""
TopicPosition = Mapping[str, Mapping[str, int]]
"""By topic the offsets to read on from: of the events, and of what could not be encoded."""


class LogCount(NamedTuple):
    """`mended`: those of the messages that come from the error table, and not from the source."""

    messages: int
    mended: int


@dataclass(frozen=True)
class EventTopic:
    """`changelog` names its plug-in, and `url` says where it is. The topic is the subject of the schemas, too. Whoever only asks whether there is something new needs no `schemas`."""

    changelog: str
    url: str = field(repr=False)
    topic: str
    schemas: tuple[SubjectSchema, ...] = ()
    known: KnownSchemas = field(default_factory=lambda: KnownSchemas(0, datetime.fromtimestamp(0, UTC)))
    retention_s: float = 7 * 86_400.0
    """For whoever writes."""
    load: int = 1
    """Which load of the dataset the changes are captured for: between two there may be a gap."""
    begins_at: TopicPosition = field(default_factory=dict)
    """From where on they are that load's, for whoever reads nothing else."""
    renames: tuple[ColumnRename, ...] = ()
    """Of columns of the table since that began, the oldest first."""
    emptied: bytes = b""
    """All changes with a lesser reference key are of before the table was emptied last, since that began. Empty: it never was."""
    accepted: int = 0
    """The number of the newest version that is not deprecated: the table gets its columns. 0: there is none, or nobody has asked."""

    def as_options(self) -> dict[str, str]:
        schemas = [{"id": each.schema_id, "version": each.version, "avro": each.avro} for each in self.schemas]
        return {
            "changelog": self.changelog,
            "changelog_url": self.url,
            "topic": self.topic,
            "schemas": json.dumps(schemas),
            "newest_schema": str(self.known.newest),
            "schemas_at": self.known.at.isoformat(),
            "retention_s": str(self.retention_s),
            "load": str(self.load),
            "begins_at": json.dumps(self.begins_at),
            "renames": renames_to_text(self.renames),
            "emptied": self.emptied.hex(),
            "accepted": str(self.accepted),
        }

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> EventTopic:
        topic = options["topic"]
        schemas = [
            SubjectSchema(topic, each["version"], each["id"], each["avro"]) for each in json.loads(options["schemas"])
        ]
        known = KnownSchemas(int(options["newest_schema"]), datetime.fromisoformat(options["schemas_at"]))
        retention_s, load = float(options["retention_s"]), int(options["load"])
        begins_at, renames = json.loads(options["begins_at"]), renames_of_text(options.get("renames", "[]"))
        url = options["changelog_url"]
        emptied, accepted = bytes.fromhex(options.get("emptied", "")), int(options.get("accepted", 0))
        return cls(
            options["changelog"],
            url,
            topic,
            tuple(schemas),
            known,
            retention_s,
            load,
            begins_at,
            renames,
            emptied,
            accepted,
        )

    @cached_property
    def _log(self) -> Changelog:
        return CHANGELOGS.get(self.changelog)(ChangelogConfig(self.url, self.retention_s, lambda: datetime.now(UTC)))

    @cached_property
    def reader(self) -> ChangelogReader:
        return self._log.reader()

    def writer(self, producer: str) -> ChangelogWriter:
        return self._log.writer(producer)

    def schema_of(self, schema_id: int) -> SubjectSchema | None:
        """A `SchemaOf`. What else the registry has is of other subjects: of these a job is told nothing."""
        schema = self._by_id.get(schema_id)
        if schema is None and 0 < schema_id <= self.known.newest:
            return SubjectSchema("another subject", 0, schema_id, {})
        return schema

    @cached_property
    def _by_id(self) -> Mapping[int, SubjectSchema]:
        return {schema.schema_id: schema for schema in self.schemas}

    @cached_property
    def columns_of(self) -> Mapping[int, tuple[str, ...]]:
        """By version the columns of a row, also those that were renamed since: what was written before has these too."""
        return {schema.version: renamed_columns(schema.columns, self.renames) for schema in self.event_schemas}

    @cached_property
    def event_schemas(self) -> tuple[SubjectSchema, ...]:
        """Whoever may register under the subject may have registered others, too. The oldest first."""
        return tuple(sorted((each for each in self.schemas if each.is_event), key=lambda each: each.version))

    @property
    def names(self) -> tuple[str, str]:
        """The topic of the events, and the one beside it."""
        return self.topic, self.topic + ERRORS_SUFFIX

    def kept(self) -> Mapping[str, Mapping[str, Bounds]]:
        """By topic and partition, what is there now."""
        return {name: self.reader.bounds(name) for name in self.names}

    def end(self) -> TopicPosition:
        """Behind what is there now."""
        return {name: {part: bounds.next for part, bounds in parts.items()} for name, parts in self.kept().items()}

    def at(self, time: datetime) -> TopicPosition:
        """The first messages that were logged then or later."""
        return {name: dict(self.reader.offsets_at(name, time)) for name in self.names}

    def count(self, start: datetime, end: datetime) -> LogCount:
        """How many messages were logged in `[start, end)`: they are read for it. Raises OffsetGone."""
        events, errors = (self._count_in(name, start, end) for name in self.names)
        return LogCount(events.messages + errors.messages, events.mended + errors.mended)

    def _count_in(self, name: str, start: datetime, end: datetime) -> LogCount:
        ends = self.reader.offsets_at(name, end + _CLOCKS_APART)
        messages = self.reader.read(name, self.reader.offsets_at(name, start - _CLOCKS_APART))
        left, counted, mended = {part for part, offset in ends.items()}, 0, 0
        for message in messages:
            if message.offset >= ends.get(message.partition, 0):
                left.discard(message.partition)
            elif start <= message.logged_at < end:
                counted += 1
                mended += is_mended(message.value or b"", self.schema_of)
            if not left:
                break
        getattr(messages, "close", lambda: None)()
        return LogCount(counted, mended)

    def logged_at(self, name: str, partition: str, offset: int) -> datetime | None:
        """Of the first message from there on; None: there is none. Raises OffsetGone."""
        ends = {part: bounds.next for part, bounds in self.reader.bounds(name).items()}
        messages = self.reader.read(name, {**ends, partition: offset})
        try:
            return next((message.logged_at for message in messages), None)
        finally:
            getattr(messages, "close", lambda: None)()

    def lag(self, position: TopicPosition) -> int:
        """How many messages are there that were not read."""
        return sum(sum(lag_of(self.reader, name, position.get(name, {})).values()) for name in self.names)

    def read(self, position: TopicPosition, decoder: Decoder, limits: EventLimits) -> tuple[TopicBatch, TopicPosition]:
        """What one commit takes, and where to read on. Raises OffsetGone."""
        errors = self.topic + ERRORS_SUFFIX
        batch = read_events(
            self.reader, self.topic, position.get(self.topic, {}), decoder, known=self.known, limits=limits
        )
        rejected = read_rejected(self.reader, self.topic, position.get(errors, {}), limits=limits)
        after: dict[str, Any] = {self.topic: batch.offsets, errors: rejected.offsets}
        batch.broken += rejected.broken
        batch.logged_hours += rejected.logged_hours
        batch.has_more = batch.has_more or rejected.has_more
        return batch, after
