"""What Kafka calls the topics of a changelog."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ingestion.changelog.kafka.topics import positions_topic, topic_name

topics = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("trips", "lake.trips"),
        ("Flight_legs2", "lake.Flight_legs2"),
        ("trips.errors", "lake.trips-2Eerrors"),
        ("a-b", "lake.a-2Db"),
        ("ü", "lake.-C3-BC"),
        ("", "lake.-"),
        ("__consumer_offsets", "lake.-5F_consumer_offsets"),
    ],
)
def test_a_name_can_be_read(topic: str, name: str) -> None:
    assert topic_name("lake", topic) == name


@given(topics, st.sampled_from(["", "lake", "a" * 100]))
@example("x" * 249, "")
@example("x" * 250, "")
def test_kafka_takes_every_name(topic: str, prefix: str) -> None:
    name = topic_name(prefix, topic)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name)
    assert name not in (".", "..")
    assert not name.startswith("__")


@given(topics, topics)
@example("a.b", "a_b")
@example("a-2Eb", "a.b")
@example("lakehub-positions", "")
def test_two_topics_have_two_names_even_where_kafka_takes_a_dot_for_an_underscore(first: str, second: str) -> None:
    names = {topic_name("", each).replace(".", "_") for each in (first, second)}
    assert len(names) == len({first, second})
    assert positions_topic("") not in names
