"""What every changelog promises: order, offsets that stay, commits of several topics that are whole or not there, and one process for each producer."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from ingestion.changelog import CHANGELOGS, Changelog, ChangelogConfig, Logged, OffsetGone, Outgoing, ShutOut
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.reading import ERRORS_SUFFIX, EventLimits, lag_of, read_rejected
from ingestion.heatpipe.wire_format import MAX_MESSAGE_BYTES
from tests.architecture.imports import ROOT

NOW = datetime.now(UTC).replace(microsecond=123_000)  # Kafka deletes what is old, and refuses what is of the future
DAY_S = 86_400.0


@pytest.fixture(params=["segments", "kafka"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Changelog:
    """Of Kafka what lies under a prefix of its own, with two partitions."""
    if request.param == "kafka":
        url = f"{request.getfixturevalue('kafka_url')}/{uuid4().hex}?partitions=2"
    else:
        url = (tmp_path / "a log").as_uri()
    return CHANGELOGS.get(request.param)(ChangelogConfig(url, DAY_S, lambda: NOW))


def outgoing(*values: str, topic: str = "trips") -> list[Outgoing]:
    return [Outgoing(topic, value[:1].encode(), value.encode()) for value in values]


def texts(log: Changelog, topic: str = "trips", **offsets: int) -> list[str]:
    return [(message.value or b"").decode() for message in log.reader().read(topic, offsets)]


def offsets_of(messages: Iterator[Logged]) -> dict[str, list[int]]:
    offsets: dict[str, list[int]] = {}
    for message in messages:
        offsets.setdefault(message.partition, []).append(message.offset)
    return offsets


def test_a_topic_that_nobody_has_written_to_is_empty(log: Changelog) -> None:
    assert log.reader().bounds("trips") == {}
    assert texts(log) == []
    assert log.writer("tap").position() is None


def test_messages_are_read_as_they_were_written(log: Changelog) -> None:
    log.writer("tap").commit(
        [Outgoing("trips", b"\x00", b"\xff\x00"), Outgoing("trips", b"", None), Outgoing("trips", b"k", b"")], {}
    )
    messages = [*log.reader().read("trips", {})]
    assert {(each.key, each.value) for each in messages} == {(b"\x00", b"\xff\x00"), (b"", None), (b"k", b"")}
    assert {each.logged_at for each in messages} == {NOW}


def test_the_largest_event_is_read_as_it_was_written(log: Changelog) -> None:
    event = random.Random(14).randbytes(MAX_MESSAGE_BYTES)  # nothing that could be compressed
    log.writer("tap").commit([Outgoing("trips", b"k", event)], {})
    assert [message.value for message in log.reader().read("trips", {})] == [event]


def test_a_topic_that_was_read_to_its_end_has_no_lag(log: Changelog) -> None:
    """Whatever lies in the log besides messages: a look for new ones would find some for ever."""
    for values in (("a", "b"), ("c",), ()):
        log.writer("tap").commit(outgoing(*values, topic=f"trips{ERRORS_SUFFIX}"), {})
    assert sum(lag_of(log.reader(), f"trips{ERRORS_SUFFIX}", {}).values()) >= 3
    batch = read_rejected(log.reader(), "trips", {}, limits=EventLimits())
    assert (batch.read, batch.has_more) == (3, False)
    assert sum(lag_of(log.reader(), f"trips{ERRORS_SUFFIX}", batch.offsets).values()) == 0
    assert read_rejected(log.reader(), "trips", batch.offsets, limits=EventLimits()).read == 0


def test_the_messages_of_a_key_stay_in_order_over_many_commits(log: Changelog) -> None:
    writer = log.writer("tap")
    for number in range(30):
        writer.commit(outgoing(f"a{number}", f"b{number}"), {"at": number})
    for key in "ab":
        assert [text for text in texts(log) if text[0] == key] == [f"{key}{number}" for number in range(30)]
    for partition, offsets in offsets_of(log.reader().read("trips", {})).items():
        bounds = log.reader().bounds("trips")[partition]
        assert offsets == sorted(set(offsets))
        assert bounds.first == offsets[0] == 0
        assert offsets[-1] < bounds.next


def test_messages_of_the_empty_key_stay_in_order_too(log: Changelog) -> None:
    writer = log.writer("tap")
    for number in range(8):
        writer.commit([Outgoing("trips", b"", b"%d" % number)], {})
    assert texts(log) == [str(number) for number in range(8)]


def test_reading_goes_on_from_any_offset(log: Changelog) -> None:
    log.writer("tap").commit(outgoing(*(f"a{number}" for number in range(5))), {})
    log.writer("tap").commit(outgoing(*(f"a{number}" for number in range(5, 9))), {})
    messages = [*log.reader().read("trips", {})]
    for place, message in enumerate(messages):
        assert texts(log, **{message.partition: message.offset}) == [f"a{number}" for number in range(place, 9)]
    assert texts(log, **{messages[0].partition: log.reader().bounds("trips")[messages[0].partition].next}) == []


@pytest.mark.parametrize("start", [-1, 9])
def test_an_offset_that_is_not_there_is_an_error(log: Changelog, start: int) -> None:
    log.writer("tap").commit(outgoing("a", "a"), {})
    partition = next(message.partition for message in log.reader().read("trips", {}))
    with pytest.raises(OffsetGone, match=r"'trips' has the offsets 0 to \d, .*Bootstrap the dataset again"):
        list(log.reader().read("trips", {partition: start}))


def test_topics_are_independent_and_may_have_any_name(log: Changelog) -> None:
    names = [
        "trips",
        "Trips",
        "shop/orders",
        "shop.orders",
        "shop_orders",
        "..",
        "ünïcode topic",
        "a%2Fb",
        "a-2Fb",
        "lakehub-positions",
        "x" * 240,
    ]
    log.writer("tap").commit([message for name in names for message in outgoing(f"x{name}", topic=name)], {})
    assert [texts(log, name) for name in names] == [[f"x{name}"] for name in names]


def test_a_commit_without_messages_moves_the_position(log: Changelog) -> None:
    log.writer("tap").commit([], {"gtid": "0-1-13", "row": 4})
    assert log.writer("tap").position() == {"gtid": "0-1-13", "row": 4}


def test_who_opens_a_producer_shuts_out_the_one_before(log: Changelog) -> None:
    before, other = log.writer("tap"), log.writer("mended")
    before.commit(outgoing("a1"), {"at": 1})
    now = log.writer("tap")
    with pytest.raises(ShutOut, match="'tap'"):
        before.commit(outgoing("a2"), {"at": 2})
    with pytest.raises(ShutOut, match="'tap'"):
        before.commit([], {"at": 2})
    other.commit(outgoing("b1"), {"at": 7})
    now.commit(outgoing("a3"), {"at": 3})
    assert sorted(texts(log)) == ["a1", "a3", "b1"]
    assert (now.position(), other.position()) == ({"at": 3}, {"at": 7})


def test_producers_that_write_at_once_lose_nothing(log: Changelog) -> None:
    def write(name: str) -> None:
        writer = log.writer(name)
        for number in range(20):
            writer.commit(outgoing(f"{name}{number}"), {"at": number})

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(texts(log)) == sorted(f"{name}{number}" for name in "abcd" for number in range(20))


def test_a_partition_that_is_not_there_is_an_error_where_it_was_read_before(log: Changelog) -> None:
    log.writer("tap").commit(outgoing("a"), {})
    assert texts(log, **{"7": 0}) == ["a"]
    with pytest.raises(OffsetGone, match="Partition 7 of the topic 'trips' has no messages, and 1 was to be read"):
        texts(log, **{"7": 1})


def test_the_library_of_a_log_is_imported_when_the_log_is_used() -> None:
    code = "import sys; from ingestion.changelog import CHANGELOGS; CHANGELOGS.get('segments'); print('confluent_kafka' in sys.modules)"
    child = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert child.stdout == "False\n"


CHILD = """
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ingestion.changelog import CHANGELOGS, ChangelogConfig, Outgoing
kind, url = sys.argv[1:]
writer = CHANGELOGS.get(kind)(ChangelogConfig(url, 86_400.0, lambda: datetime.now(UTC))).writer("tap")
number = (writer.position() or {"at": 0})["at"]
while True:
    number += 1
    messages = [Outgoing(topic, b"k", b"%d" % number) for topic in ("trips", "riders") for _ in range(1 + number % 3)]
    writer.commit(messages, {"at": number})
    print(number, flush=True)
"""


def test_a_producer_that_is_killed_goes_on_without_a_gap_or_a_repetition(
    log: Changelog, request: pytest.FixtureRequest
) -> None:
    seed = 14
    chance = random.Random(seed)
    kind, config = request.node.callspec.params["log"], log.config  # type: ignore[attr-defined]
    for _ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, kind, config.url], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline(), "it has committed once"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(chance.uniform(0.02, 0.3))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        position = log.writer("tap").position()
        assert position is not None, f"seed {seed}"
        expected = [str(number) for number in range(1, position["at"] + 1) for _ in range(1 + number % 3)]
        assert texts(log, "trips") == texts(log, "riders") == expected, f"seed {seed}"


def test_the_messages_of_an_hour_are_counted(log: Changelog) -> None:
    """Of the topic and of the one beside it, in all partitions; also where two writers have clocks that are apart by some seconds."""
    name = "kafka" if log.config.url.startswith("kafka") else "segments"  # type: ignore[attr-defined]
    topic = EventTopic(name, log.config.url, "trips")  # type: ignore[attr-defined]
    start = NOW - timedelta(hours=2)
    assert topic.count(start, NOW) == (0, 0)
    for second, count in ((-1, 1), (0, 2), (-2, 1), (3599, 3), (3601, 1), (3598, 1), (3660, 1)):
        at = start + timedelta(seconds=second)
        writer = replace(log, config=replace(log.config, clock=lambda at=at: at)).writer(f"tap {second}")  # type: ignore[type-var, attr-defined]
        writer.commit(outgoing(*"abc"[:count]) + outgoing(*"abc"[:count], topic=f"trips{ERRORS_SUFFIX}"), {})
    hour = timedelta(hours=1)
    counts = [topic.count(start + number * hour, start + (number + 1) * hour) for number in (-1, 0, 1)]
    assert counts == [(4, 0), (12, 0), (4, 0)]
    (partition, *_) = log.reader().bounds("trips")
    bounds = log.reader().bounds("trips")[partition]
    assert topic.logged_at("trips", partition, bounds.next) is None
    times = [topic.logged_at("trips", part, each.first) for part, each in log.reader().bounds("trips").items()]
    assert start - timedelta(seconds=1) in times


def test_a_time_is_found_by_its_offset(log: Changelog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each partition: the first message of that time or later, or the end."""
    assert log.reader().offsets_at("trips", NOW) == {}
    minutes = [NOW - timedelta(minutes=9 - number) for number in range(10)]
    for number, at in enumerate(minutes):
        earlier = replace(log, config=replace(log.config, clock=lambda at=at: at))  # type: ignore[type-var]
        earlier.writer("tap").commit(outgoing(f"a{number}"), {})
    (partition,) = {message.partition for message in log.reader().read("trips", {})}
    for number, at in enumerate(minutes):
        for time in (at, at - timedelta(seconds=59)):
            offset = log.reader().offsets_at("trips", time)[partition]
            assert texts(log, **{partition: offset}) == [f"a{later}" for later in range(number, 10)]
    bounds = log.reader().bounds("trips")
    assert log.reader().offsets_at("trips", NOW + timedelta(seconds=1)) == {
        each: bound.next for each, bound in bounds.items()
    }
    assert log.reader().offsets_at("trips", NOW - timedelta(days=1))[partition] == bounds[partition].first
    for millis in (1, 3, 10**12):  # what Kafka takes for the newest, and for no time at all
        early = datetime(1970, 1, 1, tzinfo=UTC) - timedelta(milliseconds=millis)
        assert log.reader().offsets_at("trips", early)[partition] == bounds[partition].first
