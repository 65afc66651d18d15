"""How many keys a second one region server answers, asked as jobs ask: in batches, by several processes at once, through the Thrift server.

The table that is asked has one region, so one server has it. What is measured is the least of what server, Thrift server and this machine can do.
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

from ingestion.index.entries import Entry
from ingestion.index.thrift_client import BATCH, FAMILIES, ThriftAddress, ThriftIndexClient

KEYS = 20_000
"""In the table: they stay in the memory of the server, as the keys of most batches do."""
_WITHIN_S = 60.0


def benchmark(host: str, port: int, *, seconds: float, processes: int) -> int:
    """Keys a second. Leaves nothing behind. Raises IndexUnavailable, and what happybase raises where no table can be made."""
    address = ThriftAddress(host, port, patience_s=_WITHIN_S)
    with _table(host, port) as name:
        with closing(ThriftIndexClient(address, name)) as client:
            client.note({})
            client.put(
                dict.fromkeys(map(_key, range(KEYS)), Entry("day=2026-01-01", uuid.uuid4().hex, "2026")), at_ms=1
            )
        ask = partial(_ask, address, name, seconds)
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as at_once:
            return round(sum(at_once.map(ask, range(processes))))


@contextmanager
def _table(host: str, port: int) -> Iterator[str]:
    name = f"lakehub-benchmark-{uuid.uuid4().hex}"
    with closing(happybase.Connection(host, port)) as connection:
        connection.create_table(name, {family.decode(): {"max_versions": 1} for family in FAMILIES})
        try:
            yield name
        finally:
            connection.delete_table(name, disable=True)


def _ask(address: ThriftAddress, name: str, seconds: float, number: int) -> float:
    """Keys a second of one process, which begins somewhere else than the others."""
    keys = [_key((number * KEYS // 7 + each) % KEYS) for each in range(KEYS)]
    batches = [keys[begin : begin + BATCH] for begin in range(0, KEYS, BATCH)]
    with closing(ThriftIndexClient(address, name)) as client:
        client.get(batches[0])  # connects
        begun, asked = time.monotonic(), 0
        while time.monotonic() < begun + seconds:
            asked += len(client.get(batches[(asked // BATCH) % len(batches)]))
        return asked / (time.monotonic() - begun)


def _key(number: int) -> str:
    return f"{number:036}"
