"""The Global Index through a real HBase and its Thrift server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen
from uuid import uuid4

import happybase
import pytest

from ingestion.index.benchmark import benchmark, filled_table
from ingestion.index.client import IndexTableMissing, IndexUnavailable
from ingestion.index.entries import FAMILIES, STATE_ROW, DamagedEntry
from ingestion.index.thrift_client import ThriftAddress, ThriftIndexClient
from tests.index_client_contract import *  # noqa: F403 (its tests are run here)
from tests.index_client_contract import HERE, KEYS, THERE
from tests.polling import scaled, wait_until
from tests.services.own_hbase import listeners_of_hbase, own_hbase

OWN_PORT = 29_860


def address(port: int, *, patience_s: float = 60.0) -> ThriftAddress:
    return ThriftAddress("127.0.0.1", port, timeout_s=scaled(30), patience_s=patience_s)


def made_table(port: int) -> str:
    name = f"index-{uuid4().hex}"
    connection = happybase.Connection("127.0.0.1", port)
    connection.create_table(name, {family.decode(): {"max_versions": 1} for family in FAMILIES})
    connection.close()
    return name


@dataclass
class CountedPace:
    """At most so many at once."""

    most: int
    taken: int = 0

    def take(self, wanted: int) -> int:
        granted = min(wanted, self.most)
        self.taken += granted
        return granted

    def back_off(self) -> None: ...


@pytest.fixture
def client(hbase_url: str) -> Iterator[ThriftIndexClient]:
    port = urlsplit(hbase_url).port or 0
    client = ThriftIndexClient(address(port), made_table(port))
    client.note({})
    yield client
    client.close()


def test_ten_entries_of_a_scan_are_a_request(client: ThriftIndexClient) -> None:
    """Allowed before they are read, and counted as they come."""
    client.put(dict.fromkeys(KEYS, HERE), at_ms=1_000)
    pace = CountedPace(most=30)
    paced = ThriftIndexClient(client.address, client.name, pace=pace)
    assert len([*paced.scan(b"", b"")]) == len(KEYS) == 2_500
    assert (pace.taken, paced.reads, paced.writes) == (4 * 100, 250, 0), "the fourth call finds that there are no more"
    paced.close()


def test_a_table_that_is_not_there_is_told(client: ThriftIndexClient) -> None:
    missing = ThriftIndexClient(client.address, "no-such-table")
    for ask in (lambda: missing.get(["a"]), lambda: missing.put({"a": HERE}, at_ms=1), missing.regions, missing.state):
        with pytest.raises(IndexTableMissing, match="`no-such-table`"):
            ask()


def test_a_table_without_its_mark_answers_nothing(hbase_url: str) -> None:
    """A key that is not there would be inserted: an answer that may not be whole is none."""
    port = urlsplit(hbase_url).port or 0
    with pytest.raises(IndexUnavailable, match="not the last, which is always there"):
        ThriftIndexClient(address(port), made_table(port)).get(["a"])


def test_a_row_of_somebody_else_is_named(client: ThriftIndexClient) -> None:
    connection = happybase.Connection(client.address.host, client.address.port)
    connection.table(client.name).put(b"foreign", {b"e:x": b"1", b"e:f": b"f"})
    connection.close()
    with pytest.raises(DamagedEntry, match="whose SHA-256 begins with 656771905e1ef731 is no entry"):
        client.get(["foreign"])


@pytest.mark.timeout(600)
def test_a_thrift_server_and_a_region_server_that_are_killed_are_waited_for(tmp_path: Path) -> None:
    """What was put is there, and is put again elsewhere. The script says that a part is missing, and starts another."""
    many = {f"{number:06}": HERE for number in range(1_000)}
    with own_hbase(tmp_path, OWN_PORT, 2) as hbase:
        assert {address for address, _ in listeners_of_hbase(OWN_PORT)} == {"127.0.0.1"}
        client = ThriftIndexClient(address(OWN_PORT, patience_s=scaled(180)), made_table(OWN_PORT))
        client.note({})
        client.put({"a": HERE, **many}, at_ms=1)
        hbase.do("kill", "thrift")
        impatient = ThriftIndexClient(address(OWN_PORT, patience_s=0.5), client.name)
        with pytest.raises(IndexUnavailable, match=f"127.0.0.1:{OWN_PORT}"):
            impatient.get(["a"])
        hbase.do("start-one", "thrift")
        assert client.get(["a"]) == {"a": HERE}
        assert client.get([STATE_ROW.decode("latin-1")]) == {}
        (before,) = client.regions()
        hbase.do("kill", "region-server", str(before.port - OWN_PORT - 2))
        with pytest.raises(subprocess.CalledProcessError):
            hbase.do("status")
        hbase.do("start-one", "region-server", "3")
        client.put({"b": THERE}, at_ms=2)
        assert client.get(["a", "b", *many]) == {"a": HERE, "b": THERE, **many}
        wait_until(lambda: [region.port for region in client.regions()] not in ([], [before.port]))
        client.close()


def test_a_server_is_benchmarked_and_nothing_is_left(hbase_url: str) -> None:
    port = urlsplit(hbase_url).port or 0
    assert benchmark("127.0.0.1", port, seconds=1.0, processes=2) > 100
    connection = happybase.Connection("127.0.0.1", port)
    assert not [name for name in connection.tables() if name.startswith(b"lakehub-benchmark-")]
    connection.close()


def test_the_table_of_a_benchmark_lies_in_hfiles_and_lacks_every_second_key(client: ThriftIndexClient) -> None:
    """As jobs meet it: keys in the memory of a server, all of them there, are answered faster."""
    at = client.address
    with filled_table(at) as name:
        with closing(happybase.Connection(at.host, at.port)) as connection:
            families = connection.table(name).families()
        assert [family["bloom_filter_type"] for family in families.values()] == [b"ROW"] * len(FAMILIES)
        with closing(ThriftIndexClient(at, name)) as asked:
            assert {int(key) for key in asked.get([f"{number:036}" for number in range(5)])} == {0, 2, 4}
        wait_until(lambda: metric_of(name, "storeFileCount", at.port) == len(FAMILIES))
        assert metric_of(name, "memStoreSize", at.port) < 1_000 < metric_of(name, "storeFileSize", at.port)


def metric_of(table: str, name: str, port: int) -> int:
    """As its region server tells it, a few seconds late; 0 until it does."""
    with urlopen(f"http://127.0.0.1:{port + 13}/jmx?qry=Hadoop:service=HBase,name=RegionServer,sub=Tables") as answer:
        beans = json.load(answer)["beans"]
    return sum(int(bean.get(f"Namespace_default_table_{table}_metric_{name}", 0)) for bean in beans)
