"""A stream of Spark that reads a changelog in Kafka has the table of the source, by the heatpipe alone: it needs no database and no Lakehub beside it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from ingestion.changelog import ChangelogConfig, Outgoing
from ingestion.changelog.kafka.log import KafkaLog
from ingestion.changelog.kafka.topics import topic_name
from ingestion.domain.merging.events import ChangeEvent, Operation
from ingestion.heatpipe.encoder import Encoder
from lakehub.setup.artifacts import fetch_artifacts
from lakehub.setup.jar_list import read_jar_list
from tests.architecture.imports import ROOT
from tests.fuzz_seed import REPEAT, SEED
from tests.polling import scaled
from tests.services.trips_in_kafka import SCHEMA

Row = tuple[str | None, Decimal | None]


class Trips:
    """The source, whose changes are committed to the log."""

    def __init__(self, kafka_url: str) -> None:
        self.prefix, self.brokers = uuid4().hex, urlsplit(kafka_url).netloc
        self._writer = KafkaLog(
            ChangelogConfig(f"{kafka_url}/{self.prefix}", 86_400, lambda: datetime.now(UTC))
        ).writer("tap")
        self._encoder = Encoder(SCHEMA, ("id",), "shop", "dc1", lambda: datetime.now(UTC))
        self.rows, self._changes = dict[int, Row](), 0

    @property
    def topic(self) -> str:
        return topic_name(self.prefix, "trips")

    def change(self, chance: random.Random) -> None:
        messages = [self._message(chance) for _ in range(chance.randint(1, 9))]
        self._writer.commit(messages, {})

    def _message(self, chance: random.Random) -> Outgoing:
        self._changes += 1
        key = chance.randint(1, 20)
        values: dict[str, Any] = {"id": key}
        operation = Operation.DELETE if chance.random() < 0.3 else Operation.UPDATE
        if operation is Operation.DELETE:
            self.rows.pop(key, None)
        else:
            row = (chance.choice(["Ulm", "\x00ü🚲", None]), chance.choice([Decimal("12.50"), Decimal("-0.01"), None]))
            self.rows[key] = row
            values |= {"city": row[0], "fare": row[1]}
        event = ChangeEvent(operation, (key,), self._changes, (), values, 1, datetime.now(UTC), data_center="dc1")
        message = self._encoder.encode(event)
        return Outgoing("trips", message.key, message.value)

    def roll_back(self) -> None:
        """A transaction that is never committed: its message is in the log, and is no change."""
        producer = Producer({"bootstrap.servers": self.brokers, "transactional.id": uuid4().hex})
        producer.init_transactions(scaled(10))
        producer.begin_transaction()
        producer.produce(self.topic, b"never committed")
        producer.flush(scaled(10))
        producer.abort_transaction(scaled(10))


@pytest.fixture
def trips(kafka_url: str) -> Trips:
    return Trips(kafka_url)


def stream(trips: Trips, folder: Path) -> None:
    jars = ",".join(map(str, fetch_artifacts(read_jar_list(Path(__file__).with_name("spark_stream.jars")))))
    command = [sys.executable, "-m", "tests.services.spark_stream", trips.brokers, trips.topic, str(folder), jars]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ}, capture_output=True, text=True, timeout=scaled(120), check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


def rows(folder: Path) -> dict[int, Row]:
    """By key what the last change of each has."""
    changes = sorted(pq.read_table(folder / "changes").to_pylist(), key=lambda change: change["reference_key"])
    assert len({change["reference_key"] for change in changes}) == len(changes)
    last = {change["id"]: change for change in changes}
    return {key: (change["city"], change["fare"]) for key, change in last.items() if not change["is_deleted"]}


def test_it_has_the_rows_of_the_source_also_where_it_goes_on(trips: Trips, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    for _ in range(2):
        for _ in range(6):
            trips.change(chance)
        trips.roll_back()
        stream(trips, tmp_path)
        assert rows(tmp_path) == trips.rows, REPEAT
