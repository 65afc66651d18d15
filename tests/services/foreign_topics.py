"""Topics of somebody else's Kafka with datasets of ours that are captured from them, and the taps that do so: in this process, step by step."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property
from typing import Any
from uuid import uuid4

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]

from ingestion.captures.changelog import configured_changelog
from ingestion.captures.records import topic_of
from ingestion.captures.servers import captures_by_server, server_of
from ingestion.domain.merging.events import Operation, RowKey
from ingestion.heatpipe.decoder import Decoder
from ingestion.heatpipe.reading import ERRORS_SUFFIX
from ingestion.heatpipe.unencoded_row import UnencodedRow
from ingestion.models import Capture, TapServer
from ingestion.schemas import registry
from ingestion.schemas.captured_versions import subject_schema_of
from ingestion.tapping import tap_leases
from ingestion.tapping.parts import TapParts
from ingestion.tapping.server_tap import ServerTap
from ingestion.tapping.topics.session import open_topics_session
from lakehub.catalog.models import Connection, Dataset
from tests import factories as make
from tests.polling import scaled

WAIT_S = 30.0


@dataclass
class ForeignTopics:
    """`url`: of the cluster. Each topic has a name that no other test has: `name` of it."""

    url: str
    prefix: str = field(default_factory=lambda: f"ksrc-{uuid4().hex[:8]}")
    taps: list[ServerTap] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    tapped_url: str = ""

    @property
    def brokers(self) -> str:
        return self.url.removeprefix("kafka://")

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.brokers})

    def name(self, topic: str) -> str:
        return f"{self.prefix}.{topic}"

    def make(self, topic: str, *, partitions: int = 1, **settings: str) -> str:
        name = self.name(topic)
        named = {key.replace("_", "."): value for key, value in settings.items()}
        (future,) = self.admin.create_topics([NewTopic(name, partitions, 1, config=named)]).values()
        future.result(scaled(WAIT_S))
        self.made.append(name)
        self._wait(lambda: name in self.admin.list_topics(timeout=5).topics)
        return name

    def add_partitions(self, topic: str, partitions: int) -> None:
        (future,) = self.admin.create_partitions([NewPartitions(self.name(topic), partitions)]).values()
        future.result(scaled(WAIT_S))
        self._wait(
            lambda: (
                len(self.admin.list_topics(self.name(topic), timeout=5).topics[self.name(topic)].partitions)
                == partitions
            )
        )

    def delete(self, topic: str) -> None:
        (future,) = self.admin.delete_topics([self.name(topic)]).values()
        future.result(scaled(WAIT_S))
        self.made.remove(self.name(topic))
        self._wait(lambda: self.name(topic) not in self.admin.list_topics(timeout=5).topics)

    def send(
        self,
        topic: str,
        *messages: tuple[str | bytes | None, Any],
        partition: int | None = None,
        at: datetime | None = None,
    ) -> None:
        """(key, value); a value that is no bytes is JSON, None is none."""
        producer, failures = (
            Producer({"bootstrap.servers": self.brokers, "linger.ms": 1, "message.max.bytes": 32 * 2**20}),
            list[Any](),
        )
        for key, value in messages:
            data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
            where: dict[str, Any] = {} if partition is None else {"partition": partition}
            when: dict[str, Any] = {} if at is None else {"timestamp": int(at.timestamp() * 1000)}
            producer.produce(
                self.name(topic), data, key, on_delivery=lambda error, _: failures.append(error), **where, **when
            )
        assert producer.flush(WAIT_S) == 0
        assert not any(failures), failures

    def transact(self, topic: str, *messages: tuple[str, Any], commits: bool) -> None:
        producer = Producer({"bootstrap.servers": self.brokers, "transactional.id": f"{self.prefix}-{uuid4().hex}"})
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        for key, value in messages:
            producer.produce(self.name(topic), json.dumps(value), key)
        producer.flush(WAIT_S)
        producer.commit_transaction(WAIT_S) if commits else producer.abort_transaction(WAIT_S)

    def connection(self, *, query: str = "") -> Connection:
        return make.connection(f"bus{len(query)}", f"{self.url}/{self.prefix}*{query}", plugin="kafka")

    def dataset(self, topic: str, *, key: tuple[str, ...] = ("id",), query: str = "", **options: Any) -> Dataset:
        dataset = make.dataset(topic, by_day=False)
        dataset.record_key = list(key)
        dataset.save()
        make.feed(dataset, connection=self.connection(query=query), object=self.name(topic), options=options)
        return dataset

    def login_url(self, topic: str, password: str = "lakehub-password") -> str:
        """Of brokers that ask for a user and a password, see deploy/services/kafka."""
        host, _, port = self.brokers.rpartition(":")
        login = "?security=sasl_plaintext&mechanism=PLAIN"
        return f"kafka://lakehub:{password}@{host}:{int(port) + 2}/{self.name(topic)}{login}"

    def logged_in(self, topic: str) -> Dataset:
        """By a connection of its own, which all datasets of the cluster have then."""
        dataset = make.dataset(topic, by_day=False)
        dataset.record_key = ["id"]
        dataset.save()
        self.tapped_url = self.login_url(topic)
        connection = make.connection(f"bus-{topic}", self.tapped_url, plugin="kafka")
        make.feed(dataset, connection=connection, object=self.name(topic), options={})
        return dataset

    def another_dataset(self, name: str, topic: str, **options: Any) -> Dataset:
        dataset = make.dataset(name, by_day=False)
        dataset.record_key = ["id"]
        dataset.save()
        make.feed(dataset, connection=Connection.objects.get(name="bus0"), object=self.name(topic), options=options)
        return dataset

    def remove_before(self, topic: str, offset: int) -> None:
        """As retention does."""
        (future,) = self.admin.delete_records([TopicPartition(self.name(topic), 0, offset)]).values()
        future.result(scaled(WAIT_S))

    @property
    def server(self) -> str:
        return server_of(self.tapped_url or self.url)

    @property
    def row(self) -> TapServer:
        return TapServer.objects.get(address=self.server)

    def capture(self, dataset: Dataset) -> Capture:
        return Capture.objects.get(feed__dataset=dataset)

    def tap(self, holder: str = "host:1:a") -> ServerTap:
        """One that has claimed the cluster."""
        plan = captures_by_server()[self.server]
        tap_leases.free_servers([self.server])
        assert tap_leases.claim(self.server, holder)
        parts = TapParts(configured_changelog(), "key", lambda: datetime.now(UTC), time.monotonic, time.sleep)
        self.taps.append(ServerTap(self.server, plan, holder, parts, open_topics_session))
        return self.taps[-1]

    def follow_plan(self, tap: ServerTap) -> None:
        tap.plan(captures_by_server()[self.server])

    def step_until(self, tap: ServerTap, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + scaled(WAIT_S)
        while not holds():
            assert time.monotonic() < deadline, (self.row.error, [*Capture.objects.values()])
            tap.step()

    def take(self, tap: ServerTap, dataset: Dataset, messages: int) -> None:
        """Until so many events and errors of the dataset are in the changelog."""
        self.step_until(tap, lambda: self.messages(dataset) >= messages)

    def messages(self, dataset: Dataset) -> int:
        reader = configured_changelog().reader()
        names = (topic_of(dataset), topic_of(dataset) + ERRORS_SUFFIX)
        return sum(1 for name in names for _ in reader.read(name, {}))

    def rows(self, dataset: Dataset) -> dict[RowKey, dict[str, Any]]:
        """The table that the events of the dataset make, by their reference keys."""
        schema_of = cache(lambda number: subject_schema_of(registry.find_by_id(number)))
        decoder = Decoder(topic_of(dataset), tuple(dataset.record_key), bytes, schema_of)
        newest = dict[RowKey, tuple[Any, Mapping[str, Any] | None]]()
        for message in configured_changelog().reader().read(topic_of(dataset), {}):
            event = decoder.decode(message.value or b"", (message.offset,)).event
            known = newest.get(event.row_key)
            if known is None or event.reference_key > known[0]:
                values = None if event.operation is Operation.DELETE else dict(event.values)
                newest[event.row_key] = (event.reference_key, values)
        return {key: dict(values) for key, (_, values) in newest.items() if values is not None}

    def errors(self, dataset: Dataset) -> list[UnencodedRow]:
        messages = configured_changelog().reader().read(topic_of(dataset) + ERRORS_SUFFIX, {})
        rows = [UnencodedRow.from_json(message.value or b"") for message in messages]
        return [row for row in rows if row is not None]

    def _wait(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + scaled(WAIT_S)
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.05)


@contextmanager
def foreign_topics(kafka_url: str) -> Iterator[ForeignTopics]:
    topics = ForeignTopics(kafka_url)
    try:
        yield topics
    finally:
        for tap in topics.taps:
            tap._end_session()
        if topics.made:
            for future in topics.admin.delete_topics(topics.made).values():
                future.result(scaled(WAIT_S))
