"""An instance of the product in a folder of its own, and the MariaDB whose tables it captures."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from lakehub.processes.supervisor.process_tree import descendants
from tests.soak.capture.stand import CaptureStand, stand

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Stage:
    standing: CaptureStand

    @property
    def home(self) -> Path:
        return self.standing.instance.home

    @property
    def url(self) -> str:
        return self.standing.source.url

    def execute(self, *statements: str) -> None:
        self.standing.source.execute(*statements)

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
def stage(folder: Path) -> Iterator[Stage]:
    """The instance runs; its database is this process's."""
    with ExitStack() as stack:
        standing = stack.enter_context(stand("segments", folder, Random(1), memory="768m"))
        settings = {name: text for name, text in standing.instance.environment.items() if name.startswith("LAKEHUB_")}
        os.environ.update(settings, DJANGO_SETTINGS_MODULE="lakehub.settings")
        from lakehub.instance import prepare_instance

        prepare_instance(will_migrate=True)
        import django

        django.setup()
        standing.instance.start()
        stack.callback(standing.instance.stop)
        wait_until(standing.instance.is_up, 120, "the instance is up")
        yield Stage(standing)


def wait_until(holds: Callable[[], bool], within_s: float, what: str) -> float:
    """How many seconds it took. Raises TimeoutError."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > within_s:
            raise TimeoutError(f"{what}: not within {within_s:.0f} s")
        time.sleep(0.1)
    return time.monotonic() - began


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
