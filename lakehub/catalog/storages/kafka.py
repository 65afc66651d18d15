"""Topics of somebody else's Kafka: a table is a topic, and its columns are those of its newest messages. Rows are captured by the process `tap`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakehub.catalog.metadata import (
    SAMPLE_SHOWN,
    ColumnMetadata,
    ColumnType,
    KeyEvidence,
    MetadataUnavailable,
    NoSuchTable,
    StorageUnreachable,
    TableMetadata,
    shown_value,
)
from lakehub.catalog.metadata.avro_types import avro_column_type
from lakehub.catalog.metadata.key_evidence import Drawn
from lakehub.catalog.metadata.table_locations import NamedTable
from lakehub.catalog.metadata.tables import StoredTable
from lakehub.catalog.storages import ServerDatabase, Storage
from lakehub.kernel.suggest import did_you_mean
from lakehub.source_topics.address import read_topics_url
from lakehub.source_topics.broken import BadMessage, TopicsError
from lakehub.source_topics.cluster import Bounds, TopicCluster, open_cluster
from lakehub.source_topics.json_types import TypesSeen
from lakehub.source_topics.kafka_url import UnusableKafkaUrl
from lakehub.source_topics.messages import ReadMessage, TopicMessage, read_message
from lakehub.source_topics.reader import sample_topic
from lakehub.source_topics.registry import SchemaRegistry

_TIMEOUT_S = 10
"""A look is short: somebody may be waiting for it."""
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_JSON_TYPES = {
    "boolean": ColumnType.BOOLEAN,
    "long": ColumnType.INTEGER,
    "double": ColumnType.FLOAT,
    "string": ColumnType.STRING,
}


@dataclass(frozen=True)
class KafkaTopic(StoredTable):
    """No engine reads it."""

    unread_remedy = "a topic is tested by its table in the lake"

    server: str
    topic: str


class KafkaStorage(Storage):
    """`url` is `kafka://user:password@host:9092/orders-*?registry=https://...`; a table is a topic."""

    is_captured = is_stream = True
    empty_hint = (
        "Check that the account may describe the topics that you need, and the names and patterns in the URL's path."
    )
    url_example = "kafka://reader:password@kafka.example.org:9092/orders-*"

    def tables(self, limit: int) -> Sequence[str]:
        with _looking():
            return self._cluster().topics()[:limit]

    def describe(self, table: str) -> TableMetadata:
        types, some = TypesSeen(), list[ReadMessage]()
        for message in self._rows(table):
            types.meet(message)
            some += [message][: SAMPLE_SHOWN - len(some)]
        avro = {name: avro_column_type(type_) for name, type_ in types.avro.items()}
        json = {name: (_JSON_TYPES[type_], True) for name, type_ in types.json.items() if name not in avro}
        if not avro and not json:
            raise MetadataUnavailable(
                f"The topic `{table}` has no message that can be read, so its columns are not known. Onboard it once it has some."
            )
        columns = avro | json
        sample = tuple(tuple(shown_value(message.row.get(name)) for name in columns) for message in some)
        return TableMetadata(tuple(ColumnMetadata(name, *kind) for name, kind in columns.items()), sample=sample)

    def key_evidence(self, table: str, key: Sequence[str]) -> KeyEvidence:
        """A message is a change of the row that its key names, so no key is there twice. One without a key is rejected, and all others are taken."""
        keys, keyless, nulls, messages = set[tuple[Any, ...]](), 0, Counter[str](), 0
        bounds = self._bounds(table)
        for read in self._rows(table):
            messages += 1
            values = tuple(read.row.get(name) for name in key)
            if None in values:
                keyless += read.value is not None
                nulls.update(name for name, value in zip(key, values, strict=True) if value is None)
            else:
                keys.add(tuple(map(str, values)))
        total = sum(each.next - each.first for each in bounds.values())
        drawn = (Drawn.ALL, None) if messages >= total else (Drawn.FIRST, total)
        return (
            KeyEvidence(len(keys), len(keys), 0, {}, *drawn)
            if keys
            else KeyEvidence(keyless, 0, keyless, dict(nulls), *drawn)
        )

    def preview(self, table: str, limit: int) -> list[TopicMessage]:
        """Some of the newest messages, as they lie there."""
        with _looking():
            bounds = self._bounds(table)
            return list(sample_topic(self._cluster(), table, _pairs(bounds), messages=limit))[:limit]

    def bounds(self, table: str) -> dict[int, Bounds]:
        """By partition, the oldest offset that is kept and the next one."""
        with _looking():
            return self._bounds(table)

    def table(self, table: str) -> KafkaTopic:
        return KafkaTopic(self._server, table)

    def location(self) -> ServerDatabase:
        try:
            address = read_topics_url(self.url)
        except UnusableKafkaUrl as problem:
            raise MetadataUnavailable(str(problem)) from None
        host, *more = address.hosts
        ca = address.login.get("ssl.ca.location")
        port = address.brokers[0].rpartition(":")[2]
        return ServerDatabase(host, port, address.listed, (Path(ca),) if ca else (), tuple(more))

    def advertised_hosts(self) -> Sequence[str]:
        with _looking():
            return self._cluster().advertised_hosts()

    def table_location(self, table: str) -> NamedTable:
        return NamedTable(self._server, table)

    def table_in_lineage(self, namespace: str, name: str) -> str:
        self.location()
        named = {f"kafka://{broker}" for broker in read_topics_url(self.url).brokers}
        return name if namespace in named and _TOPIC.fullmatch(name) else ""

    @property
    def _server(self) -> str:
        self.location()
        return read_topics_url(self.url).server

    def _cluster(self) -> TopicCluster:
        return open_cluster(self.url, timeout_s=_TIMEOUT_S)

    def _bounds(self, table: str) -> dict[int, Bounds]:
        with _looking():
            cluster = self._cluster()
            facts = cluster.facts([table]).get(table)
            if facts is None:
                raise NoSuchTable(
                    f"There is no topic `{table}` that the account may describe.{did_you_mean(table, cluster.topics())}"
                )
            return cluster.bounds(table, facts.partitions)

    def _rows(self, table: str) -> Iterator[ReadMessage]:
        """Of the newest messages, without those that are none."""
        with _looking():
            registry = SchemaRegistry(read_topics_url(self.url).registry)
            for message in sample_topic(self._cluster(), table, _pairs(self._bounds(table))):
                with suppress(BadMessage):
                    yield read_message(message, registry.schema)


def _pairs(bounds: dict[int, Bounds]) -> dict[int, tuple[int, int]]:
    return {partition: (each.first, each.next) for partition, each in bounds.items()}


@contextmanager
def _looking() -> Iterator[None]:
    try:
        yield
    except TopicsError as problem:
        raise StorageUnreachable(str(problem)) from problem
