"""The changelog in a real Kafka: what becomes of its topics there, what is too old or too large, and what happens when brokers refuse or do not answer."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from ingestion.changelog import ChangelogConfig, ChangelogError, ChangelogWriter, OffsetGone, Outgoing
from ingestion.changelog.kafka.log import KafkaLog
from ingestion.changelog.kafka.topics import LARGEST_MESSAGE, positions_topic, topic_name
from tests.architecture.imports import ROOT
from tests.polling import scaled, wait_until

DAY_S = 86_400.0
OWN_PORT = 29_799


@pytest.fixture
def prefix() -> str:
    return uuid4().hex


@pytest.fixture
def admin(kafka_url: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": urlsplit(kafka_url).netloc})


def opened(url: str, *, retention_s: float = DAY_S, ahead: timedelta = timedelta(0)) -> KafkaLog:
    """`ahead`: how fast the clock is."""
    return KafkaLog(ChangelogConfig(url, retention_s, lambda: datetime.now(UTC) + ahead))


def trips(*values: bytes) -> list[Outgoing]:
    return [Outgoing("trips", b"k", value) for value in values]


def values_of(log: KafkaLog, **offsets: int) -> list[bytes | None]:
    return [message.value for message in log.reader().read("trips", offsets)]


def settings_of(admin: AdminClient, topic: str) -> dict[str, str]:
    (future,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    return {name: entry.value for name, entry in future.result(scaled(10)).items()}


def set_in_kafka(admin: AdminClient, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    (future,) = admin.incremental_alter_configs(
        [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])]
    ).values()
    future.result(scaled(10))


def truncate(admin: AdminClient, topic: str, first: int) -> None:
    (future,) = admin.delete_records([TopicPartition(topic, 0, first)]).values()
    future.result(scaled(10))


# Topics


def test_the_retention_is_that_of_the_newest_producer(kafka_url: str, prefix: str, admin: AdminClient) -> None:
    name = topic_name(prefix, "trips")
    for days in (1, 3):
        opened(f"{kafka_url}/{prefix}", retention_s=days * DAY_S).writer("tap").commit(trips(b"a"), {})
        settings = settings_of(admin, name)
        assert settings["retention.ms"] == str(days * 86_400_000)
        assert (settings["cleanup.policy"], settings["retention.bytes"]) == ("delete", "-1")
    assert settings_of(admin, positions_topic(prefix))["cleanup.policy"] == "compact"


def test_settings_that_somebody_changed_are_set_again(kafka_url: str, prefix: str, admin: AdminClient) -> None:
    log, name = opened(f"{kafka_url}/{prefix}"), topic_name(prefix, "trips")
    log.writer("tap").commit(trips(b"a"), {})
    set_in_kafka(admin, name, "retention.bytes", "1000000")
    log.writer("tap").commit(trips(b"b"), {})
    assert settings_of(admin, name)["retention.bytes"] == "-1"


def test_a_topic_has_the_partitions_that_it_was_created_with(kafka_url: str, prefix: str) -> None:
    for partitions in (3, 5):
        log = opened(f"{kafka_url}/{prefix}?partitions={partitions}")
        log.writer("tap").commit(trips(b"a"), {})
        assert [*log.reader().bounds("trips")] == ["0", "1", "2"]
        assert len(log.reader().bounds_in_kafka(positions_topic(prefix))) == 1


def test_to_read_a_topic_does_not_create_it(kafka_url: str, prefix: str, admin: AdminClient) -> None:
    log = opened(f"{kafka_url}/{prefix}")
    assert log.reader().bounds("trips") == {}
    assert values_of(log) == []
    assert log.writer("tap").position() is None
    assert not [name for name in admin.list_topics(timeout=10).topics if prefix in name]


# What is not there any more


def test_what_is_older_than_the_retention_is_gone(kafka_url: str, prefix: str) -> None:
    log = opened(f"{kafka_url}/{prefix}", retention_s=1)
    log.writer("tap").commit(trips(b"old"), {"at": 1})
    wait_until(lambda: log.reader().bounds("trips")["0"].first > 0)
    with pytest.raises(OffsetGone, match="Partition 0 of the topic 'trips' has no messages, and 0 was to be read"):
        log.reader().read("trips", {"0": 0})
    opened(log.config.url).writer("tap").commit(trips(b"new"), {"at": 2})
    assert values_of(log) == [b"new"]


def test_what_was_cut_off_is_gone(kafka_url: str, prefix: str, admin: AdminClient) -> None:
    log = opened(f"{kafka_url}/{prefix}")
    log.writer("tap").commit(trips(b"a", b"b", b"c"), {})
    truncate(admin, topic_name(prefix, "trips"), 2)
    with pytest.raises(OffsetGone, match=r"has the offsets 2 to 3, and 1 was to be read\. Bootstrap"):
        log.reader().read("trips", {"0": 1})
    assert values_of(log) == values_of(log, **{"0": 2}) == [b"c"]


def test_what_is_cut_off_under_a_reader_is_gone(kafka_url: str, prefix: str, admin: AdminClient) -> None:
    log = opened(f"{kafka_url}/{prefix}")
    log.writer("tap").commit(trips(b"a", b"b", b"c"), {})
    messages = log.reader().read("trips", {})
    truncate(admin, topic_name(prefix, "trips"), 2)
    with pytest.raises(OffsetGone, match="'trips' was read too slowly"):
        next(messages)


# What is committed


def test_what_was_not_committed_is_never_read(kafka_url: str, prefix: str) -> None:
    log = opened(f"{kafka_url}/{prefix}")
    log.writer("tap").commit(trips(b"a"), {})
    other = Producer({"bootstrap.servers": log.address.brokers, "transactional.id": prefix})
    other.init_transactions(10)
    other.begin_transaction()
    other.produce(topic_name(prefix, "trips"), b"aborted", b"k")
    other.flush(10)
    assert values_of(log) == [b"a"]
    other.abort_transaction(10)
    log.writer("tap").commit(trips(b"b"), {})
    assert values_of(log) == [b"a", b"b"]


def test_a_commit_is_seen_in_all_of_its_topics_when_it_returns(kafka_url: str, prefix: str) -> None:
    """Without waiting for it, some of these are not: Kafka marks one partition after the other."""
    log = opened(f"{kafka_url}/{prefix}")
    writer, reader = log.writer("tap"), log.reader()
    topics = [f"topic{number}" for number in range(10)]
    ends = dict.fromkeys(topics, 0)
    for _ in range(40):
        writer.commit([Outgoing(topic, b"k", b"v") for topic in topics], {})
        for topic in topics:
            before, ends[topic] = ends[topic], reader.bounds(topic)["0"].next
            assert ends[topic] > before


# What is refused


def test_the_largest_message_is_taken_and_a_larger_one_is_named(kafka_url: str, prefix: str) -> None:
    log = opened(f"{kafka_url}/{prefix}")
    writer, largest = log.writer("tap"), os.urandom(LARGEST_MESSAGE - 1)
    with pytest.raises(ChangelogError, match="to the topic 'trips' has 16,777,217 bytes, and at most 16,777,216"):
        writer.commit(trips(b"a", largest + b"x"), {"at": 1})
    writer.commit(trips(largest), {"at": 2})
    assert values_of(log) == [largest]


def test_what_a_broker_refuses_is_not_committed_and_keeps_no_reader_waiting(
    kafka_url: str, prefix: str, admin: AdminClient
) -> None:
    log = opened(f"{kafka_url}/{prefix}")
    writer, other = log.writer("tap"), log.writer("other")
    writer.commit(trips(b"a"), {"at": 1})
    set_in_kafka(admin, topic_name(prefix, "trips"), "max.message.bytes", "1000")
    with pytest.raises(ChangelogError, match=r"refused a commit of 'tap': .*[Mm]essage.*Open the producer again"):
        writer.commit(trips(b"b", os.urandom(2_000)), {"at": 2})
    other.commit(trips(b"c"), {})
    assert values_of(log) == [b"a", b"c"]
    with pytest.raises(ChangelogError, match="Message size too large"):  # until it is opened again
        writer.commit(trips(b"d"), {"at": 2})
    assert log.writer("tap").position() == {"at": 1}


def test_after_a_commit_that_is_interrupted_the_producer_is_opened_again(kafka_url: str, prefix: str) -> None:
    def interrupt() -> datetime:
        raise KeyboardInterrupt

    writer = KafkaLog(ChangelogConfig(f"{kafka_url}/{prefix}", DAY_S, interrupt)).writer("tap")
    with pytest.raises(KeyboardInterrupt):
        writer.commit(trips(b"a"), {})
    with pytest.raises(ChangelogError, match=r"KeyboardInterrupt.*Open the producer again"):
        writer.commit(trips(b"a"), {})


def test_a_clock_that_is_fast_is_named(kafka_url: str, prefix: str) -> None:
    log = opened(f"{kafka_url}/{prefix}", ahead=timedelta(hours=2))
    with pytest.raises(ChangelogError, match=r"refused a commit of 'tap': .*Set the clock of this machine"):
        log.writer("tap").commit(trips(b"a"), {})


# Brokers that do not answer


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Takes connections and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield int(server.getsockname()[1])


def calls(log: KafkaLog) -> list[Callable[[], object]]:
    reader = log.reader()
    return [lambda: log.writer("tap"), lambda: reader.bounds("trips"), lambda: reader.read("trips", {})]


@pytest.mark.timeout(20)
def test_a_broker_that_is_down_is_an_error_soon_with_the_reason() -> None:
    for call in calls(opened("kafka://127.0.0.1:1?timeout=1")):
        with pytest.raises(ChangelogError, match=r"127\.0\.0\.1:1 did not answer .* 1 s \(.*Connection refused"):
            call()


def test_a_commit_that_cannot_be_looked_up_makes_its_writer_unusable(
    kafka_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was made: the same messages must not be committed once more."""
    log = opened(f"{kafka_url}/{prefix}")
    writer = log.writer("tap")
    with monkeypatch.context() as patched:
        patched.setattr(writer.cluster, "nexts", failing)
        with pytest.raises(ChangelogError, match=r"the broker is gone\. Open the producer again"):
            writer.commit(trips(b"a"), {"at": 1})
    with pytest.raises(ChangelogError, match="Open the producer again"):
        writer.commit(trips(b"a"), {"at": 1})
    assert log.writer("tap").position() == {"at": 1}
    assert values_of(log) == [b"a"]


def failing(*_: object) -> None:
    raise ChangelogError("the broker is gone.")


@pytest.mark.timeout(20)
def test_a_broker_that_says_nothing_is_an_error_soon(silent_port: int) -> None:
    for call in calls(opened(f"kafka://127.0.0.1:{silent_port}?timeout=1")):
        with pytest.raises(ChangelogError, match=r"did not answer .* within 1 s"):
            call()


@contextmanager
def own_broker(folder: Path) -> Iterator[Callable[[str], None]]:
    """A Kafka that a test may kill; `start`, `stop` and `kill` are what can be done to it."""
    environment = os.environ | {"LAKEHUB_TEST_SERVICES": str(folder), "LAKEHUB_TEST_KAFKA_PORT": str(OWN_PORT)}

    def do(what: str) -> None:
        if what == "kill":
            os.kill(int((folder / "kafka/kafka.pid").read_text()), signal.SIGKILL)
        else:
            subprocess.run(
                [ROOT / "deploy/services/kafka", what], env=environment, check=True, stdin=subprocess.DEVNULL
            )

    do("start")
    try:
        yield do
    finally:
        do("stop")


def writer_of_started_broker(log: KafkaLog) -> ChangelogWriter:
    """It takes connections before it knows its transactions."""
    writers = list[ChangelogWriter]()

    def has_opened() -> bool:
        with suppress(ChangelogError):
            writers.append(log.writer("tap"))
        return bool(writers)

    wait_until(has_opened, within_s=60)
    return writers[0]


@pytest.mark.timeout(240)
def test_a_broker_that_is_killed_ends_commits_and_readers_soon_and_has_what_was_committed(
    kafka_url: str, tmp_path: Path
) -> None:
    log = opened(f"kafka://127.0.0.1:{OWN_PORT}?timeout=5")
    with own_broker(tmp_path) as do:
        writer = writer_of_started_broker(log)
        writer.commit(trips(b"a", b"b"), {"at": 1})
        do("kill")
        with pytest.raises(
            ChangelogError, match=r"did not answer a commit of 'tap' within 5 s.*Open the producer again"
        ):
            writer.commit(trips(b"lost"), {"at": 2})
        with pytest.raises(ChangelogError, match=r"did not answer"):
            list(log.reader().read("trips", {}))
        do("start")
        assert writer_of_started_broker(log).position() == {"at": 1}
        assert values_of(log) == [b"a", b"b"]


# Log-in


def login_url(kafka_url: str, password: str, prefix: str, *, timeout_s: int = 30) -> str:
    """See deploy/services/kafka."""
    port = (urlsplit(kafka_url).port or 0) + 2
    return f"kafka://lakehub:{password}@127.0.0.1:{port}/{prefix}?security=sasl_plaintext&mechanism=PLAIN&timeout={timeout_s}"


def test_a_user_logs_in(kafka_url: str, prefix: str) -> None:
    log = opened(login_url(kafka_url, "lakehub-password", prefix))
    log.writer("tap").commit(trips(b"a"), {"at": 1})
    assert values_of(log) == [b"a"]


def test_a_wrong_password_is_an_error_and_nowhere_to_be_read(
    kafka_url: str, prefix: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    log = opened(login_url(kafka_url, "wr0ng-secret", prefix, timeout_s=1))
    for call in calls(log):
        with pytest.raises(
            ChangelogError, match=r"did not answer .* \(.*[Aa]uthentication.*Check .* password"
        ) as raised:
            call()
        assert "wr0ng-secret" not in f"{raised.value!r} {raised.value.__cause__!r} {log!r} {log.reader()!r}"
    assert "wr0ng-secret" not in caplog.text + "".join(capfd.readouterr())


# Resources


def test_writers_and_readers_leave_nothing_behind(kafka_url: str, prefix: str) -> None:
    def use() -> None:
        log = opened(f"{kafka_url}/{prefix}")
        writer = log.writer("tap")
        writer.commit(trips(*(b"%d" % number for number in range(5_000))), {})
        with pytest.raises(ChangelogError):
            writer.commit(trips(bytes(LARGEST_MESSAGE + 1)), {})
        next(log.reader().read("trips", {}))  # and is not read to its end

    def resources() -> tuple[int, int]:
        gc.collect()
        return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))

    use()
    before = resources()
    use()
    wait_until(lambda: resources() <= before)
