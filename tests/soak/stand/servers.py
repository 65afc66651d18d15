"""PostgreSQL and Redis servers of the soak's own, each in a folder and on a port of its own, that can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lakehub.demo.instance import free_address
from lakehub.setup.artifacts import PROJECT_ROOT
from tests.polling import wait_until

_START_ATTEMPTS = 20
_PID_FILES = {
    "postgresql": "postgresql/data/postmaster.pid",
    "redis": "redis/redis.pid",
    "mariadb": "mariadb/mariadb.pid",
    "kafka": "kafka/kafka.pid",
}


@dataclass(frozen=True)
class Server:
    """`kind`: the name of a script in deploy/services."""

    kind: str
    folder: Path
    port: int

    @property
    def url(self) -> str:
        user = "postgres@" if self.kind == "postgresql" else ""
        return f"{self.kind}://{user}127.0.0.1:{self.port}/{'postgres' if user else '0'}"

    def start(self) -> None:
        """One that was killed may have left processes and memory that are on their way out: it is tried again."""
        for attempt in range(_START_ATTEMPTS):
            done = self._call("start")
            if done.returncode == 0:
                return
            time.sleep(0.25 * (attempt + 1))
        raise RuntimeError(f"{self.kind} on port {self.port} did not start: {done.stderr[-2000:]}")

    def stop(self) -> None:
        self._call("stop")

    def kill(self) -> None:
        """It is gone then: one that is on its way out would be taken for one that runs."""
        pid = int((self.folder / _PID_FILES[self.kind]).read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), otherwise=lambda: f"{self.kind}, {pid}, was killed")

    def _call(self, verb: str) -> subprocess.CompletedProcess[str]:
        variable = f"LAKEHUB_TEST_{self.kind.upper()}_PORT"
        env = os.environ | {"LAKEHUB_TEST_SERVICES": str(self.folder), variable: str(self.port)}
        # A server keeps what it inherits open: no pipes.
        with (self.folder / f"{self.kind}.{verb}").open("w+") as out:
            done = subprocess.run(
                [PROJECT_ROOT / "deploy/services" / self.kind, verb],
                env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False,
            )  # fmt: skip
            out.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, "", out.read())


@contextmanager
def running(kind: str, folder: Path) -> Iterator[Server]:
    folder.mkdir(parents=True)
    # PostgreSQL runs as a user of its own.
    folder.chmod(0o755)
    server = Server(kind, folder, int(free_address().rpartition(":")[2]))
    server.start()
    try:
        yield server
    finally:
        server.stop()
