"""Reading topics of Kafka, committed messages only. No group keeps offsets there: whoever reads keeps its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from ingestion.changelog import Bounds, ChangelogError, Logged, OffsetGone, Offsets, check_offsets
from ingestion.changelog.kafka.cluster import Cluster
from ingestion.changelog.kafka.connection import Connection
from ingestion.changelog.kafka.topics import topic_name

_POLLED_AT_ONCE, _POLL_S = 2_000, 0.05
_GONE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError.UNKNOWN_TOPIC_OR_PART)


@dataclass
class KafkaReader:
    cluster: Cluster

    def bounds(self, topic: str) -> Mapping[str, Bounds]:
        return self.bounds_in_kafka(topic_name(self.cluster.address.prefix, topic))

    def bounds_in_kafka(self, name: str) -> dict[str, Bounds]:
        """`name`: Kafka's for the topic."""
        partitions = self.cluster.partitions([name])[name]
        if not partitions:
            return {}
        firsts, nexts = self.cluster.firsts(partitions), self.cluster.nexts(partitions)
        return {str(each.partition): Bounds(firsts[each], nexts[each]) for each in partitions}

    def offsets_at(self, topic: str, at: datetime) -> Offsets:
        """Kafka finds notes of its own, too, which have another clock: messages are read on from there."""
        name = topic_name(self.cluster.address.prefix, topic)
        if not (partitions := self.cluster.partitions([name])[name]):
            return {}
        nexts, near = self.cluster.nexts(partitions), self.cluster.offsets_at(partitions, at)
        starts = {int(each.partition): near[each] for each in partitions}
        ends = {int(each.partition): nexts[each] for each in partitions if near[each] < nexts[each]}
        offsets, wanted = {str(each.partition): nexts[each] for each in partitions}, {str(each) for each in ends}
        for message in self._messages(name, topic, starts, ends):
            if message.partition in wanted and message.logged_at >= at:
                offsets[message.partition] = message.offset
                wanted.remove(message.partition)
            if not wanted:
                break
        return offsets

    def read(self, topic: str, offsets: Offsets) -> Iterator[Logged]:
        return self.read_in_kafka(topic_name(self.cluster.address.prefix, topic), topic, offsets)

    def read_in_kafka(self, name: str, topic: str, offsets: Offsets) -> Iterator[Logged]:
        bounds = self.bounds_in_kafka(name)
        check_offsets(topic, offsets, bounds)
        starts = {int(partition): offsets.get(partition, each.first) for partition, each in bounds.items()}
        ends = {int(partition): each.next for partition, each in bounds.items()}
        return self._messages(name, topic, starts, {each: end for each, end in ends.items() if starts[each] < end})

    def _messages(self, name: str, topic: str, starts: Mapping[int, int], ends: dict[int, int]) -> Iterator[Logged]:
        """`ends`: by partition that has some, the offset to read up to."""
        if not ends:
            return
        connection = Connection.to(self.cluster.address)
        try:
            consumer = Consumer(_settings(connection))
        except KafkaException as problem:
            raise connection.failure(f"a reader of {topic!r}", problem) from problem
        try:
            consumer.assign([TopicPartition(name, partition, starts[partition]) for partition in ends])
            for message in _polled(consumer, connection, topic, ends):
                if (error := message.error()) is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise _error(error, connection, topic)
                if (partition := message.partition()) not in ends:
                    continue
                if (message.offset() or 0) >= ends[partition]:  # also where a partition's end is reported
                    del ends[partition]
                    consumer.pause([TopicPartition(name, partition)])
                elif error is None:
                    yield _logged(message)
        finally:
            consumer.close()


def _settings(connection: Connection) -> dict[str, object]:
    return connection.settings(
        group_id="lakehub",  # the library asks for some name
        enable_auto_commit=False,
        isolation_level="read_committed",
        enable_partition_eof=True,
        auto_offset_reset="error",
        check_crcs=True,
        fetch_wait_max_ms=10,  # a reader stops at the end: nothing to wait for
    )


def _polled(consumer: Consumer, connection: Connection, topic: str, ends: Mapping[int, int]) -> Iterator[Message]:
    """All that comes until nothing is to be read. Raises ChangelogError where nothing comes for too long."""
    heard_at = monotonic()
    while ends:
        messages = consumer.consume(_POLLED_AT_ONCE, _POLL_S)  # waits for so many, or for so long
        if messages:
            yield from messages
            heard_at = monotonic()  # the time that the caller took does not count
        elif monotonic() - heard_at > connection.timeout_s:
            raise connection.failure(f"a reader of {topic!r}", TimeoutError())


def _error(error: KafkaError, connection: Connection, topic: str) -> ChangelogError:
    if error.code() in _GONE:
        return OffsetGone(
            f"The topic {topic!r} was read too slowly, or was removed: {error.str()}. Bootstrap the dataset again."
        )
    return connection.failure(f"a reader of {topic!r}", KafkaException(error))


def _logged(message: Message) -> Logged:
    _, at_ms = message.timestamp()
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return Logged(str(message.partition()), message.offset() or 0, message.key() or b"", message.value(), at)
