"""Topics of a real Kafka that somebody else writes: each message is there once, in the order of its partition, and what is wrong with one stops no other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ingestion.captures.records import topic_of
from ingestion.captures.topics import topic_to_read
from ingestion.models import Finding
from ingestion.sources import SOURCES, LoggedEvents, SourceConfig
from lakehub.catalog.models import Dataset
from tests.services.foreign_topics import ForeignTopics, foreign_topics

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def topics(kafka_url: str, tmp_path: Path, settings: Any) -> Iterator[ForeignTopics]:
    settings.LAKEHUB_CHANGELOG_URL = (tmp_path / "log").as_uri()
    with foreign_topics(kafka_url) as made:
        yield made


def source_of(dataset: Dataset) -> Any:
    topic = topic_to_read(dataset, now=datetime.now(UTC))
    config = SourceConfig("kafka://nobody", "x", options=topic.as_options(), key_columns=tuple(dataset.record_key))
    return SOURCES.get("kafka")(config)


def test_messages_are_rows_and_a_null_value_deletes_one(topics: ForeignTopics) -> None:
    topics.make("orders", partitions=2)
    topics.send("orders", ("1", {"id": 1, "city": "Ulm"}), ("2", {"id": 2, "city": "Köln", "lines": [{"n": 1}]}))
    orders = topics.dataset("orders", topic_key="message")
    tap = topics.tap()
    topics.take(tap, orders, 2)
    topics.send("orders", ("1", {"id": 1, "city": "Bonn", "fare": 2.5}), ("2", None), ("3", {"id": 3}))
    topics.take(tap, orders, 5)
    assert topics.rows(orders) == {
        (1,): {"message_key": "1", "id": 1, "city": "Bonn", "fare": 2.5, "lines": None},
        (3,): {"message_key": "3", "id": 3, "city": None, "fare": None, "lines": None},
    }
    assert topics.errors(orders) == []


def test_a_load_reads_no_rows_and_begins_with_the_first_message_that_was_taken_for_it(topics: ForeignTopics) -> None:
    topics.make("orders")
    topics.send("orders", ("1", {"id": 1}), ("2", {"id": 2}))
    orders = topics.dataset("orders")
    topics.take(topics.tap(), orders, 2)
    source = source_of(orders)
    assert source.schema().names == ("message_key", "id", "_lakehub_metadata")
    reading = source.snapshot()
    assert (list(reading.batches), reading.begins_empty) == ([], True)
    (events,) = source.changes(reading.position()).batches
    assert isinstance(events, LoggedEvents)
    assert [decoded.event.row_key for decoded in events.decoded] == [(1,), (2,)]
    assert topics.capture(orders).captured_table == f"{topics.server}/{topics.name('orders')}"
    assert topic_of(orders) in topics.capture(orders).changelog_from
    assert not Finding.objects.exists()
