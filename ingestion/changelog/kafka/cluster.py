"""What is asked of the brokers besides messages: which topics there are, how far they go, and that they are as they must be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic, sleep
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from ingestion.changelog.kafka.address import KafkaAddress
from ingestion.changelog.kafka.connection import Connection
from lakehub.source_topics.kafka_client import KafkaAdmin

_FIRST, _NEXT = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]
_NO_LEADER = (
    KafkaError._NOENT,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)
_LATE = (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)
_LEADER_PAUSE_S, _FIRST_LIMIT_S = 0.02, 2.0


@dataclass
class Cluster:
    """Raises ChangelogError where brokers refuse, or do not answer in time."""

    address: KafkaAddress
    _admin: KafkaAdmin = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._admin = KafkaAdmin(Connection.to(self.address), self.address.timeout_s)

    def partitions(self, topics: Iterable[str]) -> dict[str, list[TopicPartition]]:
        """By topic; none for one that is not there. To ask creates nothing."""
        with self._admin.answering("a request for its topics"):
            futures = self._admin.api.describe_topics(
                TopicCollection([*topics]), request_timeout=self.address.timeout_s
            )
        return {topic: self._partitions_of(topic, future) for topic, future in futures.items()}

    def _partitions_of(self, topic: str, future: Future[Any]) -> list[TopicPartition]:
        with self._admin.answering(f"a request for the topic {topic!r}"):
            try:
                description = self._admin.result(future)
            except KafkaException as problem:
                if problem.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
                return []
        return sorted(TopicPartition(topic, int(each.id)) for each in description.partitions)

    def firsts(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset of the oldest message of each."""
        return self._offsets(partitions, _FIRST)

    def nexts(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset behind the last message of each that is committed."""
        return self._offsets(partitions, _NEXT)

    def offsets_at(self, partitions: Sequence[TopicPartition], at: datetime) -> dict[TopicPartition, int]:
        """An offset of each that no message of this time or a later one lies before."""
        # Kafka takes times before 1970 for words of its own, such as the newest.
        spec = OffsetSpec.for_timestamp(max(0, int(at.timestamp() * 1000)))
        nexts, offsets = self.nexts(partitions), self._offsets(partitions, spec)
        return {each: offset if offset >= 0 else nexts[each] for each, offset in offsets.items()}

    def _offsets(self, partitions: Sequence[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, int]:
        """Asked again while brokers choose leaders, and after a topic was made: a client that asked before may believe for half a minute that there is
        none, and wait. So another client asks then, and each is given longer than the one before."""
        until, limit_s = monotonic() + self.address.timeout_s, _FIRST_LIMIT_S
        renewed_at = monotonic()
        with self._admin.answering("a request for offsets"):
            while True:
                try:
                    return self._offsets_now(partitions, spec, min(limit_s, self.address.timeout_s))
                except (KafkaException, TimeoutError) as problem:
                    if not _may_pass(problem) or monotonic() > until:
                        raise
                sleep(_LEADER_PAUSE_S)
                if monotonic() > renewed_at + limit_s / 2:
                    self._admin.renew()
                    limit_s, renewed_at = 2 * limit_s, monotonic()

    def _offsets_now(
        self, partitions: Sequence[TopicPartition], spec: OffsetSpec, limit_s: float
    ) -> dict[TopicPartition, int]:
        futures = self._admin.api.list_offsets(
            dict.fromkeys(partitions, spec), isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=limit_s
        )
        return {partition: int(future.result(limit_s + 5).offset) for partition, future in futures.items()}

    def prepare_topics(self, topics: Mapping[str, tuple[int, Mapping[str, str]]]) -> None:
        """By topic, how many partitions it gets where it is created, and the settings that it has afterwards in any case.

        A topic that is there keeps its partitions: with more of them, a key would go on in another.
        """
        partitions = self.partitions(topics)
        for topic, (count, settings) in topics.items():
            if not partitions[topic]:
                self._create(NewTopic(topic, count, self.address.replicas, config=dict(settings)))
        self._set({topic: topics[topic][1] for topic in topics if partitions[topic]})

    def _create(self, topic: NewTopic) -> None:
        with self._admin.answering(f"the creation of the topic {topic.topic!r}"):
            (future,) = self._admin.api.create_topics([topic], operation_timeout=self.address.timeout_s).values()
            try:
                self._admin.result(future)
            except KafkaException as problem:
                if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # another producer was first
                    raise

    def _set(self, settings: Mapping[str, Mapping[str, str]]) -> None:
        """Only what differs: to change a topic is a right that not everybody has."""
        if not settings:
            return
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in settings]
        with self._admin.answering(f"a request for the settings of {', '.join(settings)}"):
            current = {
                resource.name: self._admin.result(future)
                for resource, future in self._admin.api.describe_configs(
                    resources, request_timeout=self.address.timeout_s
                ).items()
            }
        for topic, wanted in settings.items():
            other = {name: value for name, value in wanted.items() if current[topic][name].value != value}
            if other:
                self._alter(topic, other)

    def _alter(self, topic: str, settings: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        shown = ", ".join(f"{name}={value}" for name, value in settings.items())
        with self._admin.answering(f"a change of the topic {topic!r} to {shown}"):
            (future,) = self._admin.api.incremental_alter_configs(
                [resource], request_timeout=self.address.timeout_s
            ).values()
            self._admin.result(future)


def _may_pass(problem: BaseException) -> bool:
    return isinstance(problem, TimeoutError) or problem.args[0].code() in (*_NO_LEADER, *_LATE)
