"""An HBase of the bench's own: one JVM with ZooKeeper, master and region server, and one with Thrift."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ingestion.spark.contract.spec import GlobalIndexSpec
from lakehub.setup.artifacts import PROJECT_ROOT

_PORTS = 14
"""From the first on: of Thrift, ZooKeeper, the master and one region server."""


@dataclass(frozen=True)
class HBase:
    folder: Path
    port: int

    @property
    def thrift(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def quorum(self) -> str:
        return f"127.0.0.1:{self.port + 1}"

    @property
    def processes(self) -> tuple[int, ...]:
        return tuple(int(file.read_text()) for file in self.folder.glob("hbase/run/*.pid"))

    def index(self, table: str) -> GlobalIndexSpec:
        return GlobalIndexSpec(
            thrift=self.thrift, quorum=self.quorum, staging_uri=(self.folder / "staging").as_uri(), table=table
        )


@contextmanager
def hbase(folder: Path) -> Iterator[HBase]:
    """Its data go with `folder`, so it is not stopped in an orderly way, which takes long."""
    server = HBase(folder, _free_ports())
    environment = os.environ | {"LAKEHUB_TEST_SERVICES": str(folder), "LAKEHUB_TEST_HBASE_PORT": str(server.port)}
    command = [str(PROJECT_ROOT / "deploy/services/hbase"), "start"]
    subprocess.run(command, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield server
    finally:
        for process in server.processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def _free_ports() -> int:
    """The first of so many side by side that nobody listens on."""
    while True:
        first = random.randrange(20_000, 32_000)
        if all(_is_free(first + place) for place in range(_PORTS)):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as asked, suppress(OSError):
        asked.bind(("127.0.0.1", port))
        return True
    return False
