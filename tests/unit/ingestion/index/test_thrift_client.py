"""What a client of the index sends is allowed before, also what it sends again; and what it has asked for is whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from ingestion.domain.index_cluster.request_pace import RequestPace
from ingestion.index.client import IndexUnavailable
from ingestion.index.entries import Entry
from ingestion.index.thrift_client import IDLE_S, ThriftAddress, ThriftIndexClient
from lakehub.setup.machine import scaled
from tests.unit.ingestion.index.thrift_server import ThriftServer, thrift_server
from tests.unit.ingestion.index_cluster.test_request_pace import Clock

KEYS = [f"key {number}" for number in range(1_500)]
HERE = Entry("day=2026-11-16", "f-1", "20261116090000000")


@dataclass
class CountedPace:
    """Allows everything."""

    taken: int = 0
    steps_back: int = 0

    def take(self, wanted: int) -> int:
        self.taken += wanted
        return wanted

    def back_off(self) -> None:
        self.steps_back += 1


@pytest.fixture
def server() -> Iterator[ThriftServer]:
    with thrift_server() as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


def client_of(server: ThriftServer, clock: Clock, pace: CountedPace | RequestPace) -> ThriftIndexClient:
    address = ThriftAddress("127.0.0.1", server.port, timeout_s=scaled(30))
    return ThriftIndexClient(address, "orders", monotonic=clock.now, pause=clock.sleep, pace=pace)


def test_where_a_region_is_too_busy_all_is_sent_again_paid_for_again_and_slower(
    server: ThriftServer, clock: Clock
) -> None:
    pace = CountedPace()
    client = client_of(server, clock, pace)
    server.busy = 1
    client.put(dict.fromkeys(KEYS, HERE), at_ms=1)
    assert (server.rows, pace.taken, pace.steps_back) == (2_500, 2_500, 1)
    server.busy = 2
    assert client.get([*KEYS, "nowhere"]) == dict.fromkeys(KEYS, HERE)
    assert server.rows == pace.taken == 2_500 + 3 * 1_001 + 502
    assert (pace.steps_back, client.reads, client.writes) == (3, 1_501, 1_500)
    client.close()


@pytest.mark.parametrize(("rate", "busy"), [(1.0, 0), (4.0, 0), (4.0, 2), (40.0, 0)])
def test_a_task_that_may_send_little_keeps_to_it_with_the_row_that_is_asked_for_in_each_call(
    server: ThriftServer, clock: Clock, rate: float, busy: int
) -> None:
    """Also while HBase is too busy for some calls."""
    client = client_of(server, clock, RequestPace(rate, clock.now, clock.sleep))
    began, server.busy = clock.at, busy
    assert client.get(KEYS[:20]) == {}
    assert server.rows > 20
    assert server.rows <= rate * (clock.at - began) + 1
    client.close()


def test_a_connection_that_was_not_used_for_long_is_opened_anew_and_is_none_that_was_lost(
    server: ThriftServer, clock: Clock
) -> None:
    pace = CountedPace()
    client = client_of(server, clock, pace)
    client.get(["a"])
    clock.sleep(IDLE_S - 1)
    client.get(["a"])
    assert len(server.connections) == 1
    server.drop_connections()
    clock.sleep(IDLE_S)
    before = clock.at
    client.get(["a"])
    assert (len(server.connections), pace.steps_back, clock.at) == (2, 0, before)
    server.drop_connections()
    client.get(["a"])
    assert (len(server.connections), pace.steps_back) == (3, 1)
    client.close()


@pytest.mark.parametrize("cut", [1, 2, 500])
def test_an_answer_whose_end_is_missing_is_none(server: ThriftServer, clock: Clock, cut: int) -> None:
    """A key that has an entry and is not answered would be inserted once more."""
    client = client_of(server, clock, CountedPace())
    client.put(dict.fromkeys(KEYS[:1_000], HERE), at_ms=1)
    assert len(client.get(KEYS[:1_000])) == 1_000
    server.cut = cut
    with pytest.raises(
        IndexUnavailable, match=f"has answered {1_001 - cut:,} rows of a batch of 1,000, and not the last"
    ):
        client.get(KEYS[:1_000])


def test_a_key_in_the_words_of_hbase_is_neither_shown_nor_taken_for_them(server: ThriftServer, clock: Clock) -> None:
    """Regions are named by the key that they begin with."""
    key = "NoSuchColumnFamilyException: ann@example.com"
    server.says = f"org.apache.hadoop.hbase.NotServingRegionException: orders,{key},1.ab. is not online".encode()
    server.busy = 1
    assert client_of(server, clock, CountedPace()).get(["a"]) == {}
    server.busy = 1_000
    with pytest.raises(IndexUnavailable) as away:
        client_of(server, clock, CountedPace()).get(["a"])
    assert "NotServingRegionException. What waits" in str(away.value)
    assert "ann@example.com" not in str(away.value)
