"""The URL of a connection to a Kafka, and where its topics begin to be read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lakehub.source_topics.address import read_topics_url
from lakehub.source_topics.begin import TopicBegin, parse_begin
from lakehub.source_topics.kafka_url import UnusableKafkaUrl


def test_a_url_says_brokers_topics_and_the_registry() -> None:
    address = read_topics_url(
        "kafka://B:9093,a/orders-*,riders?registry=https%3A%2F%2Fme:p%40reg.example.org&timeout=5"
    )
    assert address.brokers == ("b:9093", "a:9092")
    assert (address.server, address.hosts, address.timeout_s) == (
        "kafka:a:9092,b:9093",
        ("b", "a", "reg.example.org"),
        5,
    )
    assert [name for name in ("orders-1", "orders", "riders") if address.lists(name)] == ["orders-1", "riders"]
    assert read_topics_url("kafka://[::1]").brokers == ("[::1]:9092",)
    assert read_topics_url("kafka://[::1]:9").hosts == ("::1",)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("kafka://me:hunter2@a:1?security=ssl", "security=ssl"),
        ("kafka://me:hunter2@a:x", "Broker 1 in the connection's URL"),
        ("kafka://a?registry=hunter2", "a registry that is not a URL"),
        ("kafka://a?registry=ftp://hunter2", "a registry that is not a URL"),
        ("kafka://a?partitions=3", "the option 'partitions'"),
        (f"kafka://{','.join(f'kafka-{number}.example.org:9092' for number in range(12))}", "12 brokers"),
        ("kafka://a?timeout=5&timeout=6", "'timeout' twice"),
    ],
)
def test_what_a_url_cannot_say_is_told_without_the_password(url: str, reason: str) -> None:
    with pytest.raises(UnusableKafkaUrl) as unusable:
        read_topics_url(url)
    assert reason in str(unusable.value)
    assert "hunter2" not in str(unusable.value)


def test_a_place_to_begin_is_a_word_a_time_or_offsets() -> None:
    assert parse_begin("latest") == TopicBegin("latest")
    assert parse_begin("0:15,12:0") == TopicBegin(offsets={0: 15, 12: 0})
    at = datetime(2026, 11, 27, 8, tzinfo=UTC)
    assert [parse_begin(text).at for text in ("2026-11-27T09:00:00+01:00", "2026-11-27T08:00")] == [at, at]


@pytest.mark.parametrize("text", ["", "now", "Earliest", "0:-1", "0:1,", "2026-13-01", "0:" + "9" * 30])
def test_any_other_place_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(ValueError, match="Write earliest, latest, a time such as"):
        parse_begin(text)
