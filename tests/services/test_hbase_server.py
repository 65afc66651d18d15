"""The HBase of the tests: what it answers and where it listens. That a crash of a part of it loses nothing, those of the client show."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import happybase
import pytest

from tests.services.own_hbase import connect, listeners_of_hbase

ROWS = {b"%06d" % number: {b"f:value": b"value %d" % number} for number in range(1_000)}


@pytest.fixture
def port(hbase_url: str) -> int:
    port = urlsplit(hbase_url).port
    assert port
    return port


@pytest.fixture
def table(port: int) -> Iterator[happybase.Table]:
    connection, name = connect(port), f"test-{uuid4().hex}"
    connection.create_table(name, {"f": {}})
    try:
        yield connection.table(name)
    finally:
        connection.delete_table(name, disable=True)
        connection.close()


def put(table: happybase.Table, rows: dict[bytes, dict[bytes, bytes]]) -> None:
    with table.batch() as batch:
        for key, columns in rows.items():
            batch.put(key, columns)


def test_rows_are_put_got_and_deleted_and_regions_say_where_they_are(table: happybase.Table, port: int) -> None:
    put(table, ROWS)
    assert dict(table.rows([*ROWS, b"nowhere"])) == ROWS
    table.delete(b"000007")
    assert table.row(b"000007") == {}
    assert len(table.rows(list(ROWS))) == len(ROWS) - 1
    (region,) = table.regions()
    assert region["server_name"] == b"127.0.0.1"
    assert region["port"] in range(port + 3, port + 12)


def test_it_listens_on_loopback_only_and_on_ports_that_follow_from_the_first(hbase_url: str, port: int) -> None:
    listeners = listeners_of_hbase(port)
    assert {address for address, _ in listeners} == {"127.0.0.1"}
    ports = {each for _, each in listeners}
    assert {port, port + 1, port + 2, port + 3, port + 13} <= ports < set(range(port, port + 22))
    assert parse_qs(urlsplit(hbase_url).query)["quorum"] == [f"127.0.0.1:{port + 1}"]
