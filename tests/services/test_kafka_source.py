"""Topics of a real Kafka that somebody else writes: each message is there once, in the order of its partition, and what is wrong with one stops no other."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ingestion.capture.topics.topics_tap import WAIT_S
from ingestion.captures.records import begin_load, topic_of
from ingestion.captures.topics import topic_to_read
from ingestion.models import Finding
from ingestion.sources import SOURCES, LoggedEvents, SourceConfig
from ingestion.tapping import server_tap
from ingestion.tapping.topics import looks as topic_looks
from lakehub.catalog.models import Connection, Dataset
from lakehub.source_topics.broken import TopicsError
from tests.services.foreign_topics import ForeignTopics, foreign_topics

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def topics(kafka_url: str, tmp_path: Path, settings: Any) -> Iterator[ForeignTopics]:
    settings.LAKEHUB_CHANGELOG_URL = (tmp_path / "log").as_uri()
    with foreign_topics(kafka_url) as made:
        yield made


@dataclass
class Counting:
    """A writer that writes nothing."""

    commits: list[Any]

    def commit(self, messages: Any, position: Any, at: Any = None) -> None:
        self.commits.append(position)


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


BROKEN: dict[str, tuple[str | bytes | None, Any, str, str]] = {
    "no JSON": ("1", b"{", "corrupt", "not JSON"),
    "no object": ("1", [1], "no_event", "a list"),
    "no UTF-8": ("1", b'{"id": "\xff"}', "invalid_utf8", "not UTF-8"),
    "empty": ("1", b"", "empty", "no bytes"),
    "Avro without a registry": ("1", b"\x00\x00\x00\x00\x07abc", "unknown_schema", "registry="),
    "NaN": ("1", b'{"id": NaN}', "type", "the number NaN"),
    "a name twice": ("1", b'{"id": 1, "id": 2}', "field", "twice in an object"),
    "beyond 64 bits": ("1", b'{"id": 1, "n": 9223372036854775808}', "type", "64 bits"),
    "deep": ("1", b'{"id": 1, "n": ' + b"[" * 300 + b"]" * 300 + b"}", "corrupt", "deeper than 100"),
    "very deep": ("1", b'{"id": 1, "n": ' + b"[" * 90_000 + b"]" * 90_000 + b"}", "corrupt", "deeper than 100"),
    "no key": ("1", {"city": "Ulm"}, "row_key", "has no `id`"),
    "null as a key": ("1", {"id": None}, "row_key", "has no `id`"),
    "a delete of nobody": ("1", None, "row_key", "topic_key"),
    "another type": ("1", {"id": 1, "n": "many"}, "type", "`n` is 'many'"),
    "half a character": ("1", b'{"id": 1, "city": "\\ud800"}', "type", "surrogates"),
    "too large": ("1", {"id": 1, "city": "x" * (8 * 2**20)}, "oversized", "8,388,608 are read"),
    "a name that the lake cannot have": ("1", {"id": 1, "a b": 1}, "field", "`a b`"),
}


def test_what_is_wrong_with_a_message_is_told_with_its_place_and_stops_no_other(topics: ForeignTopics) -> None:
    topics.make("orders", max_message_bytes=str(32 * 2**20))
    topics.send("orders", ("1", {"id": 1, "n": 1}))
    orders = topics.dataset("orders")
    tap = topics.tap()
    topics.take(tap, orders, 1)
    for key, value, *_ in BROKEN.values():
        topics.send("orders", (key, value))
    topics.send("orders", ("2", {"id": 2, "n": 2}))
    topics.take(tap, orders, 2 + len(BROKEN))
    assert topics.rows(orders).keys() == {(1,), (2,)}
    errors = topics.errors(orders)
    reasons = {name: (error.defect.value, error.reason) for name, error in zip(BROKEN, errors, strict=True)}
    for offset, (name, (_, _, defect, reason)) in enumerate(BROKEN.items(), 1):
        assert reasons[name][0] == defect, (name, reasons[name])
        assert reason in reasons[name][1], (name, reasons[name])
        assert f"partition 0, offset {offset} of" in reasons[name][1]
    assert topics.row.error == ""


def test_only_what_is_committed_is_read(topics: ForeignTopics) -> None:
    topics.make("orders")
    topics.transact("orders", ("1", {"id": 1}), commits=True)
    topics.transact("orders", ("2", {"id": 2}), commits=False)
    orders = topics.dataset("orders")
    tap = topics.tap()
    topics.transact("orders", ("3", {"id": 3}), commits=True)
    topics.take(tap, orders, 2)
    assert topics.rows(orders).keys() == {(1,), (3,)}
    tap.step()
    topics.step_until(tap, lambda: topics.row.caught_up_at is not None)


@pytest.mark.parametrize(
    ("begin", "ids"),
    [
        ("earliest", {1, 2, 3, 4, 9}),
        ("latest", {9}),
        ("2026-11-26T12:00:00Z", {3, 4, 9}),
        ("1969-12-31T23:59:59.999Z", {1, 2, 3, 4, 9}),
        ("1900-01-01", {1, 2, 3, 4, 9}),
        ("0:1", {2, 3, 4, 9}),
        ("0:1,1:1", {2, 4, 9}),
    ],
)
def test_a_topic_is_read_from_where_the_feed_says(topics: ForeignTopics, begin: str, ids: set[int]) -> None:
    topics.make("orders", partitions=2)
    for day, number in ((25, 1), (26, 3)):
        at = datetime(2026, 11, day, 13, tzinfo=UTC)
        topics.send("orders", ("a", {"id": number}), partition=number // 3, at=at)
        topics.send("orders", ("b", {"id": number + 1}), partition=number // 3, at=at)
    orders = topics.dataset("orders", topic_begin=begin)
    tap = topics.tap()
    topics.step_until(tap, lambda: topics.capture(orders).is_captured)
    topics.send("orders", ("c", {"id": 9}), partition=0)
    topics.take(tap, orders, len(ids))
    assert topics.rows(orders).keys() == {(number,) for number in ids}


def test_a_place_that_the_topic_does_not_have_is_told(topics: ForeignTopics) -> None:
    topics.make("orders")
    topics.send("orders", ("a", {"id": 1}))
    orders = topics.dataset("orders", topic_begin="0:7")
    topics.step_until(topics.tap(), lambda: topics.capture(orders).is_stopped)
    assert "names offset 7 of partition 0" in topics.capture(orders).stopped_why
    assert "Name one of these, or earliest" in topics.capture(orders).stopped_why


def test_datasets_of_one_topic_read_it_from_places_of_their_own(topics: ForeignTopics) -> None:
    topics.make("orders")
    topics.send("orders", ("a", {"id": 1}))
    newest = topics.dataset("orders", topic_begin="latest")
    tap = topics.tap()
    topics.step_until(tap, lambda: topics.capture(newest).is_captured)
    topics.send("orders", ("a", {"id": 2}))
    topics.take(tap, newest, 1)
    whole = topics.another_dataset("again", "orders")
    topics.follow_plan(tap)
    topics.take(tap, whole, 2)
    topics.send("orders", ("a", {"id": 3}))
    topics.take(tap, whole, 3)
    assert topics.rows(whole).keys() == {(1,), (2,), (3,)}
    assert topics.rows(newest).keys() == {(2,), (3,)}
    assert topics.messages(newest) == 2


def test_another_process_goes_on_and_each_message_is_there_once(topics: ForeignTopics) -> None:
    topics.make("orders", partitions=3)
    orders = topics.dataset("orders")
    sent = [(str(number), {"id": number}) for number in range(3_000)]
    topics.send("orders", *sent[:1_000])
    first = topics.tap()
    topics.take(first, orders, 300)
    topics.send("orders", *sent[1_000:])
    first._end_session()
    first.close()
    second = topics.tap("host:2:b")
    topics.take(second, orders, 3_000)
    second.step()
    assert (topics.messages(orders), len(topics.rows(orders))) == (3_000, 3_000)


def test_partitions_that_are_added_are_taken_on_and_what_they_have_is_newer(topics: ForeignTopics) -> None:
    topics.make("orders")
    topics.send("orders", *(("a", {"id": 1, "n": number}) for number in range(5)))
    orders = topics.dataset("orders")
    tap = topics.tap()
    topics.take(tap, orders, 5)
    topics.add_partitions("orders", 3)
    topics.send("orders", ("a", {"id": 1, "n": 100}), partition=2)
    topics.take(tap, orders, 6)
    assert topics.rows(orders)[1,]["n"] == 100
    topics.send("orders", ("a", {"id": 1, "n": 200}), partition=0)
    topics.take(tap, orders, 7)
    assert topics.rows(orders)[1,]["n"] == 200


def stopped_why(topics: ForeignTopics, dataset: Dataset, tap: Any) -> str:
    topics.step_until(tap, lambda: topics.capture(dataset).is_stopped)
    (finding,) = Finding.objects.filter(cleared_at=None)
    assert finding.detail["message"] == topics.capture(dataset).stopped_why
    return topics.capture(dataset).stopped_why


def test_a_topic_that_is_deleted_or_made_anew_stops_its_dataset_alone(topics: ForeignTopics) -> None:
    for name in ("orders", "riders"):
        topics.make(name)
        topics.send(name, ("a", {"id": 1}))
    orders, riders = topics.dataset("orders"), topics.dataset("riders")
    tap = topics.tap()
    topics.take(tap, orders, 1)
    topics.take(tap, riders, 1)
    topics.delete("orders")
    assert "was deleted, or the account" in stopped_why(topics, orders, tap)
    topics.send("riders", ("a", {"id": 2}))
    topics.take(tap, riders, 2)
    assert topics.capture(riders).is_captured

    topics.make("orders")
    topics.send("orders", ("a", {"id": 7}), ("a", {"id": 8}))
    begin_load(topics.capture(orders), uuid4())
    topics.follow_plan(tap)
    topics.step_until(tap, lambda: topics.capture(orders).is_captured)
    assert set(topics.capture(orders).changelog_from[topic_of(orders)].values()) == {1}
    topics.take(tap, orders, 3)
    topics.delete("orders")
    topics.make("orders")
    topics.send("orders", *[("a", {"id": 9})] * 4)
    assert "made anew" in stopped_why(topics, orders, tap)


def test_a_connection_with_a_wrong_password_keeps_no_other_of_its_cluster_waiting(
    topics: ForeignTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_tap, "TELL_EVERY_S", 0.5)
    monkeypatch.setattr(topic_looks, "TIMEOUT_S", 3)
    for name in ("orders", "riders", "cities"):
        topics.make(name)
        topics.send(name, ("a", {"id": 1}))
    orders, riders, cities = topics.logged_in("orders"), topics.logged_in("riders"), topics.logged_in("cities")
    Connection.objects.filter(name="bus-cities").update(url=topics.login_url("cities", "other-s3cret"))
    tap = topics.tap()
    for dataset in (orders, riders):
        topics.take(tap, dataset, 1)
    assert not topics.capture(cities).is_captured

    of_riders = Connection.objects.filter(name="bus-riders")
    of_riders.update(url=topics.login_url("riders", "wr0ng-s3cret"))
    for name in ("orders", "riders"):
        topics.send(name, ("a", {"id": 2}))
    topics.follow_plan(tap)
    topics.take(tap, orders, 2)
    topics.step_until(tap, lambda: topics.row.caught_up_at is not None and bool(topics.row.warnings))
    assert topics.row.error == ""
    assert "Correct the connection, or the account. Kafka at 127.0.0.1" in topics.row.warnings[0]
    assert "s3cret" not in str(topics.row.warnings)
    assert topics.row.place == {"behind": sorted(map(topic_of, (riders, cities)))}
    assert (topics.messages(riders), topics.capture(riders).is_stopped) == (1, False)

    of_riders.update(url=topics.login_url("riders"))
    topics.follow_plan(tap)
    topics.take(tap, riders, 2)
    topics.step_until(tap, lambda: topics.row.place == {"behind": [topic_of(cities)]})
    assert topics.rows(riders).keys() == {(1,), (2,)}


def test_a_connection_that_gets_through_again_goes_on(topics: ForeignTopics, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its brokers are the same, and their answer is another."""
    monkeypatch.setattr(topic_looks, "AGAIN_S", 0.5)
    monkeypatch.setattr(server_tap, "TELL_EVERY_S", 0.5)
    for name in ("orders", "riders"):
        topics.make(name)
        topics.send(name, ("a", {"id": 1}))
    orders, riders = topics.logged_in("orders"), topics.logged_in("riders")
    refused, look_by = {Connection.objects.get(name="bus-riders").url}, topic_looks._look_by

    def look_unless_refused(url: str, names: Any) -> Any:
        if url in refused:
            raise TopicsError("It did not answer.")
        return look_by(url, names)

    monkeypatch.setattr(topic_looks, "_look_by", look_unless_refused)
    tap = topics.tap()
    topics.take(tap, orders, 1)
    topics.step_until(tap, lambda: any("It did not answer." in warning for warning in topics.row.warnings))
    refused.clear()
    topics.take(tap, riders, 1)
    topics.step_until(tap, lambda: topics.row.warnings == [])


def test_messages_that_the_topic_removed_before_they_were_read_stop_the_dataset(topics: ForeignTopics) -> None:
    topics.make("orders")
    topics.send("orders", ("a", {"id": 1}))
    orders = topics.dataset("orders")
    tap = topics.tap()
    topics.take(tap, orders, 1)
    tap._end_session()
    topics.send("orders", *[("a", {"id": number}) for number in range(5)])
    topics.remove_before("orders", 4)
    why = stopped_why(topics, orders, tap)
    assert "has removed messages before they were captured: its partition 0 begins at 4, and 1 was to be read" in why
    assert "retention.ms" in why
    topics.step_until(tap, lambda: tap._session is not None)
    began = time.monotonic()
    for _ in range(4):
        tap.step()
    assert time.monotonic() - began >= 4 * WAIT_S, "who has nothing to read keeps no processor busy"
    assert "with `replace`" in why


def test_an_idle_cluster_is_heard_from_and_nothing_is_committed(topics: ForeignTopics) -> None:
    topics.make("orders")
    topics.send("orders", ("a", {"id": 1}))
    orders = topics.dataset("orders")
    tap = topics.tap()
    topics.take(tap, orders, 1)
    topics.step_until(tap, lambda: topics.row.caught_up_at is not None)
    before = resource.getrusage(resource.RUSAGE_SELF)
    commits: list[Any] = []
    session: Any = tap._session
    session.tap._writer = Counting(commits)
    began = time.monotonic()
    while time.monotonic() < began + 3:
        tap.step()
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert commits == []
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0
