"""A topic that cannot be taken now, as its registry is silent or its reader is refused, keeps no other waiting, and is taken whole later."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import fastavro
import pytest

from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.capture.topics.captured_topic import CapturedTopic
from ingestion.capture.topics.place import TopicPlace, TopicsState
from ingestion.capture.topics.topics_tap import READ_AGAIN_S, TopicsTap
from ingestion.changelog import ChangelogError
from ingestion.heatpipe.encoder import Encoder
from lakehub.kernel.avro_files import read_schema_text
from lakehub.source_topics.broken import RegistrySilent, TopicsError
from lakehub.source_topics.cluster import Places
from lakehub.source_topics.messages import TopicMessage
from lakehub.source_topics.reader import ReachedEnd, TopicOutdated
from tests.unit.ingestion.capture.tapping import Log, Versions

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
SCHEMA = read_schema_text('{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}')
JSON, AVRO = "json", "avro"


def avro(number: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMA, {"id": number})
    return b"\x00\x00\x00\x00\x07" + out.getvalue()


@dataclass
class Account:
    """Reads the topics of its connection; `refusal`: of the next reads."""

    topics: dict[str, list[bytes]]
    places: dict[str, int] = field(default_factory=dict)
    refusal: TopicsError | None = None
    opened: int = 0

    def poll(self, wait_s: float) -> Sequence[tuple[str, TopicMessage | ReachedEnd]]:
        if self.refusal is not None and self.places:
            raise self.refusal
        messages = []
        for topic, offset in self.places.items():
            values = self.topics[topic][offset : offset + 2]
            messages += [(topic, TopicMessage(0, offset + n, None, value, NOW)) for n, value in enumerate(values)]
            self.places[topic] += len(values)
        return messages

    def read_from(self, places: Places) -> None:
        self.places, self.opened = {topic: offsets[0] for topic, offsets in places.items()}, self.opened + 1


@dataclass
class Cluster:
    """A connection for each of `accounts`; all ask one registry."""

    accounts: list[Account]
    log: Log = field(default_factory=Log)
    now_s: float = 0.0
    is_silent: bool = True
    asked: int = 0

    def __post_init__(self) -> None:
        names = [name for account in self.accounts for name in account.topics]
        state = TopicsState({name: TopicPlace(1, name, "id", {0: 0}) for name in names}, counts={})
        for account in self.accounts:
            account.read_from({name: {0: 0} for name in account.topics})
        readers = [(account, frozenset(account.topics)) for account in self.accounts]
        captured, versions = {name: self._captured(name) for name in names}, Versions(keeps=True)
        for topic in captured.values():
            topic.versions = versions
        self.tap = TopicsTap(readers, self.log, captured, state, clock=lambda: NOW, monotonic=lambda: self.now_s)

    def _captured(self, name: str) -> CapturedTopic:
        spec = CaptureSpec(name, "", name, 1, ("id",))
        return CapturedTopic(
            spec, False, Versions(), self._schema, lambda schema: Encoder(schema, ("id",), "kafka://x", "", lambda: NOW)
        )

    def _schema(self, number: int) -> Any:
        self.asked += 1
        if self.is_silent:
            raise RegistrySilent("The registry is away.", self.now_s + 10)
        return SCHEMA

    def step(self, times: int = 10) -> dict[str, int]:
        """How many events of each topic are in the log then."""
        for _ in range(times):
            self.tap.step()
        topics = [message.topic for message in self.log.messages]
        return {topic: topics.count(topic) for topic in sorted({*topics})}


@pytest.mark.parametrize("is_one_connection", [True, False])
def test_a_silent_registry_keeps_only_the_topics_waiting_that_need_it(is_one_connection: bool) -> None:
    values = {JSON: [b'{"id": %d}' % number for number in range(5)], AVRO: [b'{"id": 9}', *map(avro, range(5))]}
    cluster = Cluster([Account(values)] if is_one_connection else [Account({name: values[name]}) for name in values])
    assert cluster.step() == {JSON: 5}
    assert (cluster.asked, cluster.tap.waits[AVRO].why) == (1, "The registry is away.")
    assert cluster.tap.state.places[AVRO].next == {0: 0}

    cluster.now_s = 10.0
    values[JSON].append(b'{"id": 6}')
    assert cluster.step() == {JSON: 6}
    assert (cluster.asked, [*cluster.tap.waits]) == (2, [AVRO])

    cluster.now_s, cluster.is_silent = 20.0, False
    assert cluster.step() == {AVRO: 6, JSON: 6}
    assert (cluster.tap.waits, cluster.tap.state.places[AVRO].next) == ({}, {0: 6})
    (counts,) = cluster.tap.counts.values()
    assert counts == {AVRO: 6, JSON: 6}


def test_no_step_waits_for_two_registries_that_are_silent() -> None:
    cluster = Cluster([Account({name: [avro(1)]}) for name in ("a", "b", "c")])
    for asked in (1, 2, 3, 3):
        cluster.tap.step()
        assert cluster.asked == asked
    assert sorted(cluster.tap.waits) == ["a", "b", "c"]
    assert cluster.log.messages == []


def test_a_reader_that_is_refused_keeps_only_its_own_topics_waiting() -> None:
    refused = Account({"a": [b'{"id": 1}'], "b": [b'{"id": 1}']}, refusal=TopicsError("The account may not."))
    other = Account({JSON: [b'{"id": 1}']})
    cluster = Cluster([refused, other])
    assert cluster.step() == {JSON: 1}
    assert {wait.why for wait in cluster.tap.waits.values()} == {"The account may not."}
    assert (refused.opened, other.opened) == (2, 1)
    refused.refusal, cluster.now_s = None, READ_AGAIN_S
    assert cluster.step() == {"a": 1, "b": 1, JSON: 1}


def test_a_topic_that_is_another_one_ends_the_tap() -> None:
    cluster = Cluster([Account({JSON: []}, refusal=TopicOutdated("It was made anew."))])
    with pytest.raises(TopicOutdated, match="made anew"):
        cluster.tap.step()
    with pytest.raises(ChangelogError, match="has failed"):
        cluster.tap.step()
