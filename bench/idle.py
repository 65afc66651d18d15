"""What an instance that has nothing to do costs: its share of a core, and the memory of all its processes.

The real instance, as `manage.py up` runs it on SQLite, in an empty home. No JVM runs before the first job. Memory is the
proportional share (PSS), which counts a page that processes share once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.harness import ChildFailed, Report, run
from bench.serving.server import free_address
from lakehub.processes.supervisor import process_tree
from lakehub.setup.locations import PACKAGES

START_TIMEOUT_S = 120
MAX_CORE_SHARE, MAX_PSS_MB = 0.02, 400


@dataclass(frozen=True)
class Size:
    settle_s: float
    """After all run: what starts does its first work."""
    turns: int
    turn_s: float


FULL, QUICK = Size(30, 3, 60), Size(3, 1, 10)


def main() -> int:
    return run("idle", bench, __doc__)


def bench(report: Report) -> None:
    size = QUICK if report.quick else FULL
    with _instance(report) as pid:
        time.sleep(size.settle_s)
        shares = [_core_share(pid, size.turn_s) for _ in range(size.turns)]
        memory = {each: _pss_mb(each) for each in _processes(pid)}
        rows = [[_name(each), f"{100 * shares[-1].get(each, 0):.2f}", f"{mb:.1f}"] for each, mb in memory.items()]
    total = min(sum(share.values()) for share in shares)
    report.table(f"Each process, over {size.turn_s:.0f} s", ["process", "% of a core", "MB"], rows)
    report.figure("core_share", total)
    report.figure("pss_mb", sum(memory.values()))
    report.figure("processes", len(memory))
    report.at_most("share of a core", 100 * total, 100 * MAX_CORE_SHARE, unit=" %")
    report.at_most("memory of all processes", sum(memory.values()), MAX_PSS_MB, unit=" MB")


@contextmanager
def _instance(report: Report) -> Iterator[int]:
    """The process of `manage.py up`, once all run."""
    host, port = free_address()
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHUB_", "DJANGO_"))}
    with tempfile.TemporaryDirectory(prefix="lakehub-idle-") as home:
        log = Path(home) / "log"
        command = [sys.executable, "-m", "lakehub", "up", "--bind", f"{host}:{port}"]
        begun = time.monotonic()
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, cwd=PACKAGES, env=own | {"LAKEHUB_HOME": home}, stdout=out, stderr=out, start_new_session=True
            )
        try:
            _wait_until_ready(f"http://{host}:{port}/ready", process, log)
            report.print_line(f"ready after {time.monotonic() - begun:.1f} s")
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not (_answers(url) and log.read_text().count(" ready.") == 2):  # the two workers
        if process.poll() is not None or time.monotonic() > deadline:
            raise ChildFailed(f"The instance did not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.1)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310  an address of our own
            return bool(answer.status == 200)
    except OSError:
        return False


def _processes(pid: int) -> list[int]:
    return [pid, *process_tree.descendants(pid)]


def _core_share(pid: int, seconds: float) -> dict[int, float]:
    """Of each process: its time on a processor over the time that passed."""
    before, begun = {each: _cpu_s(each) for each in _processes(pid)}, time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - begun
    return {each: (_cpu_s(each) - before.get(each, 0.0)) / passed for each in _processes(pid)}


def _cpu_s(pid: int) -> float:
    # After the name: the state is field 3; user and system time are fields 14 and 15.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _pss_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _name(pid: int) -> str:
    return f"{Path(f'/proc/{pid}/comm').read_text().strip()} {pid}"


if __name__ == "__main__":
    sys.exit(main())
