"""Writing to Kafka: each commit is a transaction, with the producer's position as one of its messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import monotonic, sleep

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from ingestion.changelog import ChangelogConfig, ChangelogError, Outgoing, ProducerPosition, ShutOut
from ingestion.changelog.kafka.address import KafkaAddress
from ingestion.changelog.kafka.cluster import Cluster
from ingestion.changelog.kafka.connection import Connection
from ingestion.changelog.kafka.reader import KafkaReader
from ingestion.changelog.kafka.topics import (
    LARGEST_MESSAGE,
    MESSAGE_LIMIT,
    POSITION_SETTINGS,
    message_settings,
    positions_topic,
    topic_name,
)

_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ABORT_S = 5.0
_LONGEST_TRANSACTION_S = 60
"""After so long Kafka aborts the transaction of a producer that was killed: readers wait for it."""
_POLL_S = 0.1
_AGAIN = "Open the producer again, and go on from its position."


def open_producer(address: KafkaAddress, producer: str) -> tuple[Connection, Producer]:
    """Shuts out whoever opened it before, and aborts what that one has not committed. Raises ChangelogError."""
    connection = Connection.to(address)
    settings = connection.settings(
        transactional_id="/".join(("lakehub", address.prefix, producer)),
        transaction_timeout_ms=1000 * max(_LONGEST_TRANSACTION_S, address.timeout_s),
        partitioner="murmur2",  # as Java's producers do; and an empty key has a partition too
        compression_type="zstd",
        linger_ms=5,
        message_max_bytes=MESSAGE_LIMIT,
    )
    try:
        client = Producer(settings)
        try:
            client.init_transactions(address.timeout_s)
        except KafkaException:
            client.poll(0)  # for the reason
            raise
    except KafkaException as problem:
        raise connection.failure(f"the opening of the producer {producer!r}", problem) from problem
    return connection, client


@dataclass
class KafkaWriter:
    config: ChangelogConfig = field(repr=False)
    cluster: Cluster
    producer: str
    _connection: Connection = field(repr=False)
    _client: Producer
    _prepared: set[str] = field(default_factory=set)
    _failure: ChangelogError | None = None

    def position(self) -> ProducerPosition | None:
        latest = None
        for message in KafkaReader(self.cluster).read_in_kafka(self._positions, self._positions, {}):
            if message.key == self.producer.encode():
                latest = message.value
        return None if latest is None else dict(json.loads(latest))

    def commit(self, messages: Sequence[Outgoing], position: ProducerPosition, at: datetime | None = None) -> None:
        if self._failure is not None:
            raise type(self._failure)(str(self._failure))
        own = Outgoing(self._positions, self.producer.encode(), json.dumps(position).encode())
        addressed = [message._replace(topic=topic_name(self._prefix, message.topic)) for message in messages]
        for message in (*messages, own):
            _check_size(message)
        self._prepare({message.topic for message in addressed})
        with self._failing():
            written = self._transact([*addressed, own], at or self.config.clock())
            self._wait_until_seen(written)

    @property
    def _prefix(self) -> str:
        return self.cluster.address.prefix

    @property
    def _positions(self) -> str:
        return positions_topic(self._prefix)

    def _prepare(self, topics: set[str]) -> None:
        """Before the first message to each: a topic that is there already may have other settings."""
        settings = message_settings(self.config.retention_s)
        unprepared = dict.fromkeys(topics - self._prepared, (self.cluster.address.partitions, settings))
        if self._positions not in self._prepared:
            unprepared[self._positions] = (1, POSITION_SETTINGS)
        if unprepared:
            self.cluster.prepare_topics(unprepared)
            self._prepared |= unprepared.keys()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """After an error nobody knows whether the commit was made, until the producer is opened again: this writer makes no other."""
        try:
            yield
        except BaseException as problem:
            self._failure = self._error(problem)
            self._abort()
            if isinstance(problem, Exception):
                raise self._failure from problem
            raise

    def _transact(self, messages: Sequence[Outgoing], at: datetime) -> dict[TopicPartition, int]:
        self._client.begin_transaction()
        written = self._send(messages, at)
        self._client.commit_transaction(self.cluster.address.timeout_s)
        return written

    def _abort(self) -> None:
        """So that readers need not wait until the transaction times out."""
        with suppress(KafkaException, SystemError):
            self._client.abort_transaction(min(_ABORT_S, self.cluster.address.timeout_s))

    def _send(self, messages: Sequence[Outgoing], at: datetime) -> dict[TopicPartition, int]:
        """By partition the last offset that was written. Where a message failed, it ends at once: the commit fails then, with the reason."""
        deliveries = _Deliveries()
        at_ms = (at - _EPOCH) // timedelta(milliseconds=1)
        until = monotonic() + self.cluster.address.timeout_s
        for message in messages:
            self._produce(message, at_ms, deliveries, until)
        while self._client.flush(_POLL_S) and not deliveries.failed:
            _check_time(until)
        return deliveries.written

    def _produce(self, message: Outgoing, at_ms: int, deliveries: _Deliveries, until: float) -> None:
        while not deliveries.failed:
            try:
                self._client.produce(message.topic, message.value, message.key, timestamp=at_ms, on_delivery=deliveries)
            except BufferError:  # the queue is full
                _check_time(until)
                self._client.poll(_POLL_S)
            else:
                return

    def _wait_until_seen(self, written: dict[TopicPartition, int]) -> None:
        """A transaction is committed a moment before readers see all of it."""
        until = monotonic() + self.cluster.address.timeout_s
        pause_s = 0.001
        while written := self._unseen(written):
            _check_time(until)
            sleep(pause_s)
            pause_s = min(2 * pause_s, 0.1)

    def _unseen(self, written: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        nexts = self.cluster.nexts([*written])
        return {partition: offset for partition, offset in written.items() if nexts[partition] <= offset}

    def _error(self, problem: BaseException) -> ChangelogError:
        """The library raises a SystemError, with the reason as its cause, where it was shut out while it told of messages."""
        if isinstance(problem, SystemError) and isinstance(problem.__cause__, KafkaException):
            problem = problem.__cause__
        if isinstance(problem, KafkaException) and problem.args[0].code() in _FENCED:
            return ShutOut(f"Another process writes as {self.producer!r} since: this one must end.")
        if isinstance(problem, KafkaException | TimeoutError):
            with suppress(KafkaException, SystemError):
                self._client.poll(0)  # for the reason
            problem = self._connection.failure(f"a commit of {self.producer!r}", problem)
        return ChangelogError(f"{str(problem) or repr(problem)} {_AGAIN}")


@dataclass
class _Deliveries:
    """What became of a transaction's messages. `written`: by partition the last offset."""

    written: dict[TopicPartition, int] = field(default_factory=dict)
    failed: bool = False

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed = True
            return
        partition = TopicPartition(str(message.topic()), message.partition() or 0)
        self.written[partition] = max(self.written.get(partition, 0), message.offset() or 0)


def _check_time(until: float) -> None:
    if monotonic() > until:
        raise TimeoutError


def _check_size(message: Outgoing) -> None:
    size = len(message.key) + len(message.value or b"")
    if size > LARGEST_MESSAGE:
        raise ChangelogError(
            f"A message to the topic {message.topic!r} has {size:,} bytes, and at most {LARGEST_MESSAGE:,} are taken. "
            "Nothing of this commit was written. Shorten the value that is so long."
        )
