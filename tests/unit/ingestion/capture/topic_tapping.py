"""Topics of made-up messages, their tap, and a log, for as many processes as it takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.capture.topics.captured_topic import CapturedTopic
from ingestion.capture.topics.place import TopicPlace, TopicsState
from ingestion.capture.topics.topics_tap import TopicsTap
from ingestion.changelog import ChangelogWriter
from ingestion.heatpipe.encoder import Encoder
from ingestion.heatpipe.subject_schema import SubjectSchema
from ingestion.heatpipe.unencoded_row import UnencodedRow
from lakehub.source_topics.broken import UNKNOWN_SCHEMA, BadMessage
from lakehub.source_topics.cluster import Places
from lakehub.source_topics.messages import TopicMessage
from lakehub.source_topics.reader import ReachedEnd
from tests.unit.ingestion.capture.tapping import Log, Versions

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
ORDERS = "orders"


def no_registry(number: int) -> Any:
    raise BadMessage(UNKNOWN_SCHEMA, f"There is no schema {number}.")


@dataclass
class FakeTopic:
    """Its partitions, as they are read from `starts` on."""

    messages: list[TopicMessage] = field(default_factory=list)

    def send(self, key: str | bytes | None, value: Any, *, partition: int = 0, at: datetime | None = NOW) -> None:
        """A value that is no bytes is JSON."""
        data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
        offset = sum(message.partition == partition for message in self.messages)
        self.messages.append(TopicMessage(partition, offset, key.encode() if isinstance(key, str) else key, data, at))

    def end(self, partition: int) -> int:
        return sum(message.partition == partition for message in self.messages)

    def reader(self, starts: dict[int, int]) -> FakeReader:
        return FakeReader([each for each in self.messages if each.offset >= starts.get(each.partition, 2**62)], self)


@dataclass
class FakeReader:
    left: list[TopicMessage]
    topic: FakeTopic

    def poll(self, wait_s: float) -> list[tuple[str, TopicMessage | ReachedEnd]]:
        taken, self.left = self.left[:3], self.left[3:]
        return [(ORDERS, message) for message in taken]

    def read_from(self, places: Places) -> None:
        self.left = self.topic.reader({**places.get(ORDERS, {})}).left


@dataclass
class TopicTapping:
    """`topic`: that is read, for the topic `orders` of the changelog."""

    key: tuple[str, ...] = ("id",)
    has_message_key: bool = False
    schema_of: Callable[[int], Any] = no_registry
    required: frozenset[str] | None = None
    topic: FakeTopic = field(default_factory=FakeTopic)
    log: Log = field(default_factory=Log)
    writer: ChangelogWriter | None = None
    """Of another log than `log`."""
    versions: Versions = field(default_factory=lambda: Versions(keeps=True))
    now_s: float = 0.0

    def place(self) -> TopicPlace:
        stored = (self.writer or self.log).position()
        partitions = {message.partition for message in self.topic.messages} or {0}
        if stored is None:
            return TopicPlace(1, ORDERS, "id-1", dict.fromkeys(sorted(partitions), 0))
        return TopicsState.from_json(stored).places[ORDERS]

    def captured(self) -> CapturedTopic:
        spec = CaptureSpec(ORDERS, "", ORDERS, 1, self.key, required=self.required)

        def new_encoder(schema: SubjectSchema) -> Encoder:
            return Encoder(schema, self.key, "kafka://test/orders", "", lambda: NOW)

        topic = CapturedTopic(spec, self.has_message_key, self.versions, self.schema_of, new_encoder)
        topic.begin_with(
            next((schema for schema, _ in reversed(self.versions.known) if schema.subject == ORDERS), None)
        )
        return topic

    def tap(self, place: TopicPlace | None = None) -> TopicsTap:
        """Another process, from where the one before was."""
        place, log = place or self.place(), self.writer or self.log
        reader = self.topic.reader(place.next)
        return TopicsTap(
            [(reader, frozenset({ORDERS}))],
            log,
            {ORDERS: self.captured()},
            TopicsState({ORDERS: place}, counts=(log.position() or {}).get("counts")),
            clock=lambda: NOW,
            monotonic=lambda: self.now_s,
        )

    def take(self, place: TopicPlace | None = None) -> None:
        self.tap(place).step()

    def errors(self) -> list[UnencodedRow]:
        rows = [
            UnencodedRow.from_json(message.value or b"") for message in self.log.messages if message.topic != ORDERS
        ]
        return [row for row in rows if row is not None]

    def events(self) -> int:
        return sum(message.topic == ORDERS for message in self.log.messages)
