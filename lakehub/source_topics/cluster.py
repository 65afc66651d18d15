"""A cluster as it is asked: which topics there are, how far they go, and where a time begins in them. Committed messages only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from lakehub.source_topics.address import TopicsAddress, read_topics_url
from lakehub.source_topics.broken import TopicsError
from lakehub.source_topics.kafka_client import KafkaAdmin, KafkaClient
from lakehub.source_topics.kafka_url import UnusableKafkaUrl

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RIGHTS = "Give the account the right to describe and read the topic, and no other."
_UNAUTHORIZED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
_INTERNAL = "__"
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]


class Bounds(NamedTuple):
    """`first` is the offset of the oldest message that is kept, `next` the one behind the last that is committed."""

    first: int
    next: int


@dataclass(frozen=True)
class TopicFacts:
    """`id`: another one for a topic that was made anew; empty where the brokers give none."""

    id: str
    partitions: tuple[int, ...]


class ClusterClient(KafkaClient):
    @classmethod
    def to(cls, address: TopicsAddress) -> ClusterClient:
        return cls(",".join(address.brokers), address.login, address.timeout_s)

    def settings(self, **own: object) -> dict[str, Any]:
        return {**super().settings(**own), "allow.auto.create.topics": False}

    def failure(self, attempt: str, problem: BaseException) -> TopicsError:
        if silence := self.silence(attempt, problem):
            return TopicsError(
                f"{silence} Check that it runs, that this machine reaches it and the addresses that its brokers advertise, and the user and the password."
            )
        refusal, code = self.refusal(attempt, problem)
        return TopicsError(f"{refusal} {_RIGHTS}" if code in _UNAUTHORIZED else refusal)


def open_cluster(url: str, *, timeout_s: int | None = None) -> TopicCluster:
    """Nothing is connected yet. `timeout_s`: at most, instead of the URL's. Raises TopicsError."""
    try:
        address = read_topics_url(url)
    except UnusableKafkaUrl as problem:
        raise TopicsError(str(problem)) from None
    return TopicCluster(address, min(address.timeout_s, timeout_s or address.timeout_s))


@dataclass
class TopicCluster:
    """Raises TopicsError where brokers refuse, or do not answer in time."""

    address: TopicsAddress
    timeout_s: int
    client: ClusterClient = field(init=False, repr=False)
    _admin: KafkaAdmin = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.client = ClusterClient.to(self.address)
        self._admin = KafkaAdmin(self.client, self.timeout_s)

    def topics(self) -> list[str]:
        """Those that the URL lists, sorted; Kafka's own are left out."""
        with self._admin.answering("a request for its topics"):
            names = self._admin.api.list_topics(timeout=self.timeout_s).topics
        return sorted(name for name in names if not name.startswith(_INTERNAL) and self.address.lists(name))

    def advertised_hosts(self) -> tuple[str, ...]:
        """Where the brokers say that they are: clients go there next."""
        with self._admin.answering("a request for its brokers"):
            brokers = self._admin.api.list_topics(timeout=self.timeout_s).brokers.values()
        return tuple(sorted({str(broker.host).strip("[]") for broker in brokers}))

    def facts(self, topics: Sequence[str]) -> dict[str, TopicFacts]:
        """Without those that are not there. To ask creates nothing."""
        if not topics:
            return {}
        with self._admin.answering("a request for its topics"):
            futures = self._admin.api.describe_topics(TopicCollection([*topics]), request_timeout=self.timeout_s)
            described = {topic: self._described(future) for topic, future in futures.items()}
        return {topic: facts for topic, facts in described.items() if facts is not None}

    def _described(self, future: Future[Any]) -> TopicFacts | None:
        try:
            description = self._admin.result(future)
        except KafkaException as problem:
            if problem.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return None
        return TopicFacts(str(description.topic_id), tuple(sorted(int(each.id) for each in description.partitions)))

    def bounds(self, topic: str, partitions: Sequence[int]) -> dict[int, Bounds]:
        firsts, nexts = self.offsets(topic, partitions, EARLIEST), self.offsets(topic, partitions, LATEST)
        return {number: Bounds(firsts[number], nexts[number]) for number in partitions}

    def offsets_at(self, topic: str, partitions: Sequence[int], at: datetime) -> dict[int, int]:
        """Of the first message at that time or later; behind the last one where there is none. All are later than 1970, and Kafka takes times before for words of its own, such as the newest."""
        millis = (at - _EPOCH) // timedelta(milliseconds=1)
        offsets = self.offsets(topic, partitions, EARLIEST if millis < 0 else OffsetSpec.for_timestamp(millis))
        nexts = self.offsets(topic, partitions, LATEST)
        return {number: offset if offset >= 0 else nexts[number] for number, offset in offsets.items()}

    def offsets(self, topic: str, partitions: Sequence[int], spec: OffsetSpec) -> dict[int, int]:
        wanted = {TopicPartition(topic, number): spec for number in partitions}
        if not wanted:
            return {}
        with self._admin.answering(f"a request for the offsets of the topic {topic!r}"):
            futures = self._admin.api.list_offsets(
                wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=self.timeout_s
            )
            return {int(each.partition): int(self._admin.result(future).offset) for each, future in futures.items()}


Places = Mapping[str, Mapping[int, int]]
"""By topic and partition, the offset to read from."""
