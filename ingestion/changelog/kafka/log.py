"""The changelog of one URL."""

from __future__ import annotations

from dataclasses import dataclass, field

from ingestion.changelog import ChangelogConfig
from ingestion.changelog.kafka.address import KafkaAddress, read_address
from ingestion.changelog.kafka.cluster import Cluster
from ingestion.changelog.kafka.reader import KafkaReader
from ingestion.changelog.kafka.writer import KafkaWriter, open_producer


@dataclass(frozen=True)
class KafkaLog:
    """The URL is `kafka://user:password@host:port,host:port/prefix?partitions=4`; several installations share a cluster by prefixes."""

    config: ChangelogConfig
    address: KafkaAddress = field(init=False)
    _cluster: Cluster = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", read_address(self.config.url))
        object.__setattr__(self, "_cluster", Cluster(self.address))

    def writer(self, producer: str) -> KafkaWriter:
        return KafkaWriter(self.config, self._cluster, producer, *open_producer(self.address, producer))

    def reader(self) -> KafkaReader:
        return KafkaReader(self._cluster)
