"""An instance of the product in a folder of its own, and the MariaDB whose tables it captures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from lakehub.processes.supervisor.process_tree import descendants
from tests.soak.capture.stand import BRIEF, CaptureStand, stand
from tests.soak.stand.instance import set_django_up
from tests.soak.stand.waiting import wait_until

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Stage:
    standing: CaptureStand
    _stack: ExitStack

    @property
    def home(self) -> Path:
        return self.standing.instance.home

    @property
    def url(self) -> str:
        return self.standing.source.url

    @property
    def port(self) -> int:
        return self.standing.servers["mariadb"].port

    @property
    def folder(self) -> Path:
        return self.standing.folder

    def start(self) -> None:
        self.standing.instance.start()
        self._stack.callback(self.standing.instance.stop)

    def wait_until_up(self) -> None:
        wait_until(self.standing.instance.is_up, "the instance is up", 120)

    def execute(self, *statements: str) -> None:
        self.standing.source.execute(*statements)

    def rows_read(self) -> int:
        """Of all tables of the source, since its server began."""
        return self.standing.source.rows_read()

    def core_seconds(self, process: str = "") -> float:
        """Of all processes of the instance, since each began; or of that one with those that it has started."""
        instance = self.standing.instance
        if not process:
            return sum(map(_cpu_seconds, instance.processes()))
        pid = instance.process(process)
        return sum(map(_cpu_seconds, (pid, *descendants(pid))))

    def memory_mib(self) -> float:
        return sum(_resident_bytes(pid) for pid in self.standing.instance.processes()) / 2**20


@contextmanager
def stage(folder: Path, *, briefly: bool) -> Iterator[Stage]:
    """An instance that does not run yet, whose database is this process's. `briefly`: of a run so short that starting is most of it."""
    settings = {"LAKEHUB_SPARK_MEMORY": "768m"} | (BRIEF if briefly else {})
    with ExitStack() as stack:
        standing = stack.enter_context(stand("segments", folder, Random(1), **settings))
        set_django_up(standing.instance.environment)
        yield Stage(standing, stack)


def _cpu_seconds(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0


def _resident_bytes(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[21]) * _PAGE if fields else 0


def _stat(pid: int) -> list[str]:
    """Behind the name, which may have spaces. Empty: it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
