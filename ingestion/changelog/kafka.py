"""A changelog in Kafka: a commit is a transaction of an idempotent producer, and readers see what is committed only.

A producer's position is a message of a compacted topic, in the same transaction. Offsets have gaps, where a transaction ended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from time import monotonic
from urllib.parse import parse_qs, urlsplit

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from ingestion.changelog import (
    Bounds,
    ChangelogConfig,
    ChangelogError,
    Logged,
    OffsetGone,
    Offsets,
    Outgoing,
    ProducerPosition,
    ShutOut,
)

_POSITIONS = "lakehub-positions"
_TIMEOUT_S = 30.0
_POLLED_AT_ONCE, _POLL_S = 2_000, 0.05
_LEGAL_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
_ENCODED = "lakehub-hex-"
_ENDS: tuple[OffsetSpec, OffsetSpec] = (OffsetSpec.earliest(), OffsetSpec.latest())  # type: ignore[no-untyped-call]
_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)


Delivered = Callable[[KafkaError | None, Message], None]


@dataclass(frozen=True)
class KafkaLog:
    """The URL is `kafka://host:port,host:port/prefix?partitions=4&replicas=3`; several installations may share a cluster by prefixes."""

    config: ChangelogConfig

    def writer(self, producer: str) -> KafkaWriter:
        settings = {
            **self._connection,
            "transactional.id": self.topic_name(f"producer {producer}"),
            "enable.idempotence": True,
            "linger.ms": 5,
            "compression.type": "zstd",
        }
        client = Producer(settings)
        try:
            client.init_transactions(_TIMEOUT_S)
        except KafkaException as problem:
            raise _error(problem, producer) from problem
        return KafkaWriter(self, producer, client)

    def reader(self) -> KafkaReader:
        return KafkaReader(self)

    def create_topics(self, topics: Mapping[str, Mapping[str, str]]) -> None:
        """Those that are not there. `topics`: with their settings."""
        options = parse_qs(urlsplit(self.config.url).query)
        partitions, replicas = int(options.get("partitions", ["1"])[0]), int(options.get("replicas", ["1"])[0])
        new_topics = [
            NewTopic(name, 1 if name == self.positions else partitions, replicas, config=dict(settings))
            for name, settings in topics.items()
        ]
        for name, future in self.admin.create_topics(new_topics).items():
            try:
                future.result(_TIMEOUT_S)
            except KafkaException as problem:
                if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise ChangelogError(f"The topic {name!r} could not be created: {problem}") from problem

    def consumer(self) -> Consumer:
        return Consumer(
            {
                **self._connection,
                "group.id": "lakehub",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
            }
        )

    def ends(self, partitions: Sequence[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, int]:
        """By partition the first offset, or the one behind the last that is committed."""
        futures = self.admin.list_offsets(
            dict.fromkeys(partitions, spec), isolation_level=IsolationLevel.READ_COMMITTED
        )
        return {partition: int(future.result(_TIMEOUT_S).offset) for partition, future in futures.items()}

    def topic_name(self, topic: str) -> str:
        """Kafka's for it: whatever the topic is called, each has another."""
        prefix = urlsplit(self.config.url).path.strip("/")
        name = f"{prefix}.{topic}" if prefix else topic
        is_legal = _LEGAL_NAME.fullmatch(name) and not name.startswith(_ENCODED) and name not in (".", "..")
        return name if is_legal else _ENCODED + name.encode().hex()

    @property
    def positions(self) -> str:
        return self.topic_name(_POSITIONS)

    @cached_property
    def admin(self) -> AdminClient:
        """It answers as long as it is kept."""
        return AdminClient({**self._connection})

    @property
    def _connection(self) -> dict[str, str | int | float | bool]:
        return {"bootstrap.servers": urlsplit(self.config.url).netloc}


@dataclass
class KafkaWriter:
    log: KafkaLog
    producer: str
    client: Producer
    _known_topics: set[str] = field(default_factory=set)

    def position(self) -> ProducerPosition | None:
        latest = None
        for message in KafkaReader(self.log).read(_POSITIONS, {}):
            if message.key == self.producer.encode():
                latest = message.value
        return None if latest is None else dict(json.loads(latest))

    def commit(self, messages: Sequence[Outgoing], position: ProducerPosition) -> None:
        self._create_topics({self.log.topic_name(message.topic) for message in messages})
        now_ms = int(self.log.config.clock().timestamp() * 1000)
        failed: list[KafkaError] = []
        written: dict[TopicPartition, int] = {}

        def note(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failed.append(error)
                return
            partition = TopicPartition(str(message.topic()), int(message.partition() or 0))
            written[partition] = max(written.get(partition, -1), int(message.offset() or 0))

        try:
            self.client.begin_transaction()
            for message in messages:
                self._produce(self.log.topic_name(message.topic), message.key, message.value, now_ms, note)
            self._produce(self.log.positions, self.producer.encode(), json.dumps(position).encode(), now_ms, note)
            self.client.flush(_TIMEOUT_S)
            if failed:
                raise KafkaException(failed[0])
            self.client.commit_transaction(_TIMEOUT_S)
            self._wait_until_seen(written)
        except KafkaException as problem:
            raise _error(problem, self.producer) from problem

    def _wait_until_seen(self, written: Mapping[TopicPartition, int]) -> None:
        """A transaction is committed a moment before readers see all of it."""
        waiting = dict(written)
        until = monotonic() + _TIMEOUT_S
        while waiting:
            ends = self.log.ends([*waiting], _ENDS[1])
            waiting = {partition: offset for partition, offset in waiting.items() if ends[partition] <= offset}
            if waiting and monotonic() > until:
                raise ChangelogError(
                    f"What {self.producer!r} has committed cannot be read after {_TIMEOUT_S:g} s. Open the producer again."
                )

    def _produce(self, topic: str, key: bytes, value: bytes | None, now_ms: int, note: Delivered) -> None:
        while True:
            try:
                self.client.produce(topic, value, key, timestamp=now_ms, on_delivery=note)
            except BufferError:
                self.client.poll(1.0)  # the queue is full
            else:
                return

    def _create_topics(self, topics: set[str]) -> None:
        retention = {
            "retention.ms": str(int(self.log.config.retention_s * 1000)),
            "message.timestamp.type": "CreateTime",
        }
        missing: dict[str, Mapping[str, str]] = dict.fromkeys(topics - self._known_topics, retention)
        if self.log.positions not in self._known_topics:
            missing[self.log.positions] = {
                "cleanup.policy": "compact",
                "segment.bytes": "1048576",
                "min.cleanable.dirty.ratio": "0.1",
            }
        if missing:
            self.log.create_topics(missing)
            self._known_topics |= missing.keys()


@dataclass
class KafkaReader:
    log: KafkaLog

    def bounds(self, topic: str) -> Mapping[str, Bounds]:
        name = self.log.topic_name(topic)
        partitions = self._partitions(name)
        if not partitions:
            return {}
        first, following = (self.log.ends(partitions, spec) for spec in _ENDS)
        return {
            str(partition.partition): Bounds(first[partition], following[partition])
            for partition in sorted(first, key=lambda each: int(each.partition))
        }

    def read(self, topic: str, offsets: Offsets) -> Iterator[Logged]:
        bounds = self.bounds(topic)
        starts = {partition: offsets.get(partition, each.first) for partition, each in bounds.items()}
        for partition, each in bounds.items():
            if not each.first <= starts[partition] <= each.next:
                raise OffsetGone(
                    f"The topic {topic!r} has the offsets {each.first:,} to {each.next - 1:,}, and {starts[partition]:,} was to be read. "
                    "Bootstrap the dataset again, or keep messages for longer than its readers pause."
                )
        if unknown := [name for name, start in offsets.items() if name not in bounds and start]:
            raise OffsetGone(f"The topic {topic!r} has no partition {unknown[0]!r}. Bootstrap the dataset again.")
        wanted = {int(partition): each.next for partition, each in bounds.items() if starts[partition] < each.next}
        return self._messages(self.log.topic_name(topic), starts, wanted)

    def _messages(self, topic: str, starts: Mapping[str, int], wanted: dict[int, int]) -> Iterator[Logged]:
        """`wanted`: by partition, the offset to read up to."""
        if not wanted:
            return
        consumer = self.log.consumer()
        try:
            consumer.assign([TopicPartition(topic, number, starts[str(number)]) for number in wanted])
            silent_polls = 0
            while wanted:
                messages = consumer.consume(_POLLED_AT_ONCE, _POLL_S)  # waits for so many, or for so long
                silent_polls = 0 if messages else silent_polls + 1
                if silent_polls * _POLL_S > _TIMEOUT_S:
                    raise ChangelogError(f"Kafka did not answer for {_TIMEOUT_S:g} s while {topic!r} was read.")
                for message in messages:
                    if (logged := _logged(message, wanted)) is not None:
                        yield logged
        finally:
            consumer.close()

    def _partitions(self, topic: str) -> list[TopicPartition]:
        try:
            metadata = self.log.admin.list_topics(topic, timeout=_TIMEOUT_S).topics.get(topic)
        except KafkaException as problem:
            raise ChangelogError(f"Kafka at {self.log.config.url} does not answer: {problem}") from problem
        if metadata is None or metadata.error is not None:
            return []
        return [TopicPartition(topic, number) for number in metadata.partitions]


def _logged(message: Message, wanted: dict[int, int]) -> Logged | None:
    """None: it says that a partition has ended, or is behind what is wanted of one."""
    error, partition = message.error(), message.partition()
    assert partition is not None
    if error is not None:
        if error.code() != KafkaError._PARTITION_EOF:
            raise OffsetGone(f"{message.topic()!r} cannot be read on: {error}")
        wanted.pop(partition, None)
        return None
    offset = message.offset()
    assert offset is not None
    if partition not in wanted or offset >= wanted[partition]:
        wanted.pop(partition, None)
        return None
    _, at_ms = message.timestamp()
    return Logged(
        str(partition), offset, message.key() or b"", message.value(), datetime.fromtimestamp(at_ms / 1000, UTC)
    )


def _error(problem: KafkaException, producer: str) -> ChangelogError:
    error = problem.args[0]
    if error.code() in _FENCED or error.fatal():
        return ShutOut(f"Another process writes as {producer!r} since: this one must end.")
    return ChangelogError(
        f"Kafka has not committed what {producer!r} wrote: {error}. Open the producer again, and go on from its position."
    )
