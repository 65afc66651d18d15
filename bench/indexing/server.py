"""An HBase of the bench's own: of one region server one JVM with ZooKeeper and master, and one with Thrift; of more a JVM for each."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ingestion.spark.contract.spec import GlobalIndexSpec
from tests.polling import wait_until
from tests.services.own_hbase import OwnHBase

_PORTS, _COUNTERS_FROM = 13, 13
"""Those of a server that tell its counters lie so far above the first. Beside one for each of them these are taken."""
_GONE_WITHIN_S = 10.0


@dataclass(frozen=True)
class HBase:
    folder: Path
    port: int
    servers: int = 1

    @property
    def thrift(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def quorum(self) -> str:
        return f"127.0.0.1:{self.port + 1}"

    @property
    def counter_ports(self) -> tuple[int, ...]:
        """Of each region server."""
        first = self.port + _COUNTERS_FROM
        return tuple(range(first, first + self.servers))

    @property
    def processes(self) -> tuple[int, ...]:
        return tuple(int(file.read_text()) for file in self.folder.glob("hbase/run/*.pid"))

    def index(self, table: str) -> GlobalIndexSpec:
        return GlobalIndexSpec(
            thrift=self.thrift, quorum=self.quorum, staging_uri=(self.folder / "staging").as_uri(), table=table
        )


@contextmanager
def hbase(folder: Path, servers: int = 1, settings: Mapping[str, str] | None = None) -> Iterator[HBase]:
    """`settings`: of HBase itself. Its data go with `folder`, so it is not stopped in an orderly way, which takes long."""
    server = HBase(folder, _free_ports(_PORTS + servers), servers)
    OwnHBase(folder, server.port, settings or {}).do("start", str(servers), stdout=subprocess.DEVNULL)
    try:
        yield server
    finally:
        _kill(server.processes)


def _kill(processes: Sequence[int]) -> None:
    """Until they are gone: they would go on to write into a folder that is being removed."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    wait_until(lambda: not any(map(_runs, processes)), within_s=_GONE_WITHIN_S)


def _runs(process: int) -> bool:
    """One that has ended and that nobody has asked for yet has no command line."""
    with suppress(FileNotFoundError):
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    return False


def _free_ports(count: int) -> int:
    """The first of so many side by side that nobody listens on."""
    while True:
        first = random.randrange(20_000, 32_000)
        if all(_is_free(first + place) for place in range(count)):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as asked, suppress(OSError):
        asked.bind(("127.0.0.1", port))
        return True
    return False
