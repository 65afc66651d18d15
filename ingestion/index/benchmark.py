"""How many keys a second one region server answers, asked as jobs ask: in batches, by several processes at once, through the Thrift server.

The table that is asked has one region, so one server has it, and lies in HFiles with Bloom filters, as an index does. Half of the keys are not there, as those of new
rows are not. What is measured is the least of what server, Thrift server and this machine can do.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from multiprocessing import get_context

import happybase

from ingestion.index.entries import FAMILIES, Entry
from ingestion.index.patient_client import BATCH
from ingestion.index.thrift_client import ThriftAddress, ThriftIndexClient

KEYS = 40_000
"""That are asked for; the table has every second one. It is so small that its blocks stay in the memory of the server, as those of most batches do."""
AS_INDEXES = {"max_versions": 1, "bloom_filter_type": "ROW", "block_cache_enabled": True}
"""What HBase gives each family of an index. One that is made through Thrift has neither, if it is not asked for."""
_ENTRY = Entry("day=2026-01-01", "f" * 36, "20260101000000000")
_WITHIN_S = 60.0


def benchmark(host: str, port: int, *, seconds: float, processes: int) -> int:
    """Keys a second. Leaves nothing behind. Raises IndexUnavailable, and what happybase raises where no table can be made."""
    address = ThriftAddress(host, port, patience_s=_WITHIN_S)
    with filled_table(address) as name:
        ask = partial(_ask, address, name, seconds)
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as at_once:
            return round(sum(at_once.map(ask, range(processes))))


@contextmanager
def filled_table(address: ThriftAddress) -> Iterator[str]:
    """Its name. It is dropped at the end."""
    name = f"lakehub-benchmark-{uuid.uuid4().hex}"
    try:
        with _connected(address) as connection:
            connection.create_table(name, {family.decode(): AS_INDEXES for family in FAMILIES})
        with closing(ThriftIndexClient(address, name)) as client:
            client.note({})
            client.put(dict.fromkeys(map(_key, range(0, KEYS, 2)), _ENTRY), at_ms=1)
        with _connected(address) as connection:
            # A region that closes writes to HFiles what it has in memory: Thrift has no word for that alone.
            connection.disable_table(name)
            connection.enable_table(name)
        yield name
    finally:
        _drop(address, name)


def _drop(address: ThriftAddress, name: str) -> None:
    with _connected(address) as connection:
        if name.encode() in connection.tables():
            connection.delete_table(name, disable=True)


def _connected(address: ThriftAddress) -> closing[happybase.Connection]:
    """For a moment: a Thrift server closes connections on which nothing is asked for a minute."""
    return closing(happybase.Connection(address.host, address.port))


def _ask(address: ThriftAddress, name: str, seconds: float, number: int) -> float:
    """Keys a second of one process, which begins somewhere else than the others."""
    keys = [_key((number * KEYS // 7 + each) % KEYS) for each in range(KEYS)]
    batches = [keys[begin : begin + BATCH] for begin in range(0, KEYS, BATCH)]
    with closing(ThriftIndexClient(address, name)) as client:
        client.get(batches[0])  # connects
        begun, asked = time.monotonic(), 0
        while time.monotonic() < begun + seconds:
            client.get(batches[(asked // BATCH) % len(batches)])
            asked += BATCH
        return asked / (time.monotonic() - begun)


def _key(number: int) -> str:
    return f"{number:036}"
