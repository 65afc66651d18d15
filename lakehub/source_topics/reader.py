"""Reading topics from given offsets on, without a group: whoever reads keeps where it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from time import monotonic

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message, TopicPartition

from lakehub.source_topics.broken import TopicsError
from lakehub.source_topics.cluster import Places, TopicCluster
from lakehub.source_topics.messages import TopicMessage

_AT_ONCE = 500
_OUTDATED = (
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError.OFFSET_OUT_OF_RANGE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
)
SAMPLE_MESSAGES, SAMPLE_S, SAMPLE_BYTES = 1_000, 8.0, 32 * 2**20
"""A look at a topic takes no more of its newest messages."""


class TopicOutdated(TopicsError):
    """What is to be read is not there any more, or not in this form: whoever reads looks at the topic anew."""


class TopicReader:
    """Close it. `places`: what is read, and from where on."""

    def __init__(self, cluster: TopicCluster, places: Places) -> None:
        self._client = cluster.client
        self._consumer = self._new_consumer()
        self._assign(places)

    def read_from(self, places: Places) -> None:
        """Another consumer reads from there on: this one may have fetched what lies behind."""
        self._consumer.close()
        self._consumer = self._new_consumer()
        self._assign(places)

    def _new_consumer(self) -> Consumer:
        return Consumer(
            self._client.settings(
                group_id="lakehub",  # the library asks for some name; nothing is kept under it
                enable_auto_commit=False,
                isolation_level="read_committed",
                enable_partition_eof=True,
                auto_offset_reset="error",
                check_crcs=True,
                queued_max_messages_kbytes=16_384,
            )
        )

    def _assign(self, places: Places) -> None:
        partitions = [
            TopicPartition(topic, partition, offset)
            for topic, offsets in places.items()
            for partition, offset in offsets.items()
        ]
        try:
            self._consumer.assign(partitions)
        except KafkaException as problem:
            self._consumer.close()
            raise self._client.failure("a reader of its topics", problem) from problem

    def poll(self, wait_s: float) -> list[tuple[str, TopicMessage | ReachedEnd]]:
        """With the topic of each; none came within `wait_s` where it is empty. Raises TopicOutdated, TopicsError."""
        try:
            messages = self._consumer.consume(_AT_ONCE, wait_s)
        except KafkaException as problem:
            raise self._client.failure("a reader of its topics", problem) from problem
        return [(str(message.topic()), self._received(message)) for message in messages]

    def _received(self, message: Message) -> TopicMessage | ReachedEnd:
        error = message.error()
        if error is None:
            return _read(message)
        if error.code() == KafkaError._PARTITION_EOF:
            return ReachedEnd(message.partition() or 0, message.offset() or 0)
        if error.code() in _OUTDATED:
            raise TopicOutdated(f"The topic {message.topic()!r} is not what it was: {error.str()}")
        raise self._client.failure(f"a reader of {message.topic()!r}", KafkaException(error))

    def close(self) -> None:
        self._consumer.close()


class ReachedEnd:
    """Nothing more is in the partition; `offset` is that of the message to come."""

    def __init__(self, partition: int, offset: int) -> None:
        self.partition, self.offset = partition, offset


def sample_topic(
    cluster: TopicCluster, topic: str, partitions: Mapping[int, tuple[int, int]], *, messages: int = SAMPLE_MESSAGES
) -> Iterator[TopicMessage]:
    """About so many of the newest, of all partitions alike. `partitions`: the bounds of each (`TopicCluster.bounds`)."""
    each = max(1, messages // max(1, len(partitions)))
    ends = {number: end for number, (first, end) in partitions.items() if first < end}
    reader = TopicReader(
        cluster, {topic: {number: max(partitions[number][0], end - each) for number, end in ends.items()}}
    )
    until, left = monotonic() + SAMPLE_S, SAMPLE_BYTES
    try:
        while ends and left > 0 and monotonic() < until:
            for _, received in reader.poll(0.2):
                if isinstance(received, ReachedEnd) or received.offset >= ends.get(received.partition, 0) - 1:
                    ends.pop(received.partition, None)
                if isinstance(received, TopicMessage):
                    left -= len(received.value or b"")
                    yield received
    finally:
        reader.close()


def _read(message: Message) -> TopicMessage:
    kind, millis = message.timestamp()
    at = None if kind == TIMESTAMP_NOT_AVAILABLE or millis < 0 else _time_of(millis)
    key, value = message.key(), message.value()
    return TopicMessage(message.partition() or 0, message.offset() or 0, _bytes(key), _bytes(value), at)


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def _time_of(millis: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(millis / 1000, UTC)
    except (OverflowError, ValueError, OSError):  # a producer may write any
        return None
