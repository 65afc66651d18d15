"""`python -m tests [suite ...] [no-suite ...]`: the suites, each in a process of its own, two at a time.

`no-web` leaves a suite out. Prints how long each took and, last, one line that says how many passed and failed in all.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from lakehub.setup.machine import slowness
from tests.brief_jvms import make_archives

SUITES = (
    "unit", "unit/quality", "contracts", "golden", "docs", "architecture", "web", "web/frontend", "web/quality", "spark", "services", "e2e",
)  # fmt: skip
"""Where a folder of a suite stands as well, it is run apart, so that two workers can share the suite. Processes that xdist shares it out
to would each read all of it first, which for the pure tests takes as long as to run them."""
WITHOUT = {"unit": ("django", "schemathesis", "xdist")}
"""Plug-ins that a suite can do without: the pure one has no Django to set up, and takes a third less time for it."""
LONGEST_FIRST = (
    "spark", "contracts", "services", "web", "web/quality", "e2e", "web/frontend", "unit", "unit/quality", "architecture", "docs", "golden",
)  # fmt: skip
"""Two workers take the suites from this queue, so that both are at work until the end: the short ones fill what a long one leaves.
Two processes at a time are what a small machine has cores for: with more, each takes the longer. What the first worker runs is
shown as it goes, what the other runs when it is over."""
WITH_JVMS = {"spark", "contracts", "services", "e2e"}
WORKERS = 2
NOT = "no-"
SERVERS = ("redis", "postgresql", "mariadb", "openid", "kafka", "hbase")
"""The scripts in deploy/services by name."""
FOLDER = Path(__file__).parent
NOTHING_COLLECTED = 5


@dataclass(frozen=True)
class Run:
    suite: str
    seconds: float
    passed: int
    failed: int
    skipped: int
    exit_code: int

    @property
    def ok(self) -> bool:
        return self.exit_code in (0, NOTHING_COLLECTED)


def main(wanted: list[str]) -> int:
    left_out = {name.removeprefix(NOT) for name in wanted if name.startswith(NOT)}
    chosen = {name for name in wanted if not name.startswith(NOT)}
    unknown = sorted((chosen | left_out) - set(SUITES))
    if unknown:
        print(f"There is no suite {', '.join(unknown)}. There are: {', '.join(SUITES)}.", file=sys.stderr)
        return 2
    suites = [suite for suite in SUITES if not chosen or {suite, _whole(suite)} & chosen]
    suites = [suite for suite in suites if not {suite, _whole(suite)} & left_out]
    suites = [suite for suite in suites if any((FOLDER / suite).rglob("test_*.py"))]
    print(f"Deadlines are those of a quiet machine x {slowness():.2f} (LAKEHUB_SLOWNESS)", flush=True)
    began = time.monotonic()
    if WITH_JVMS & set(suites):
        make_archives()
    with servers() if "services" in suites else nullcontext():
        runs = run_all(suites)
    print_summary(runs, time.monotonic() - began)
    return 0 if all(each.ok for each in runs) and sum(each.passed for each in runs) else 1


@contextmanager
def servers() -> Iterator[None]:
    """The servers that are installed and do not run yet are started, and stopped again. Of the others the tests say what is missing."""
    folder = FOLDER.parent / "deploy" / "services"
    started = [name for name in SERVERS if _starts(folder / name)]
    try:
        yield
    finally:
        for name in started:
            subprocess.run([folder / name, "stop"], check=False, stdin=subprocess.DEVNULL)


def _starts(script: Path) -> bool:
    """Whether it runs because of us; a server that is named by its URL is someone else's to start."""
    if f"LAKEHUB_TEST_{script.name.upper()}_URL" in os.environ:
        return False
    if subprocess.run([script, "status"], check=False, capture_output=True).returncode == 0:
        return False
    return subprocess.run([script, "start"], check=False, stdin=subprocess.DEVNULL).returncode == 0


def run_all(suites: Sequence[str]) -> list[Run]:
    waiting = deque(sorted(suites, key=LONGEST_FIRST.index))
    workers = min(WORKERS, len(suites))
    with ThreadPoolExecutor(max_workers=WORKERS) as side_by_side:
        going = [side_by_side.submit(run_waiting, waiting, shown=worker == 0) for worker in range(workers)]
        runs = [each for worker in going for each in worker.result()]
    return sorted(runs, key=lambda each: SUITES.index(each.suite))


def run_waiting(waiting: deque[str], *, shown: bool) -> list[Run]:
    """Until none waits any more."""
    runs = []
    with suppress(IndexError):
        while suite := waiting.popleft():
            runs.append(run(suite, shown=shown))
    return runs


def run(suite: str, *, shown: bool = True) -> Run:
    """What it prints is shown as it comes, or else when it is over."""
    print(f"\n── {suite}{'' if shown else ', beside the others'} ──", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        began = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-q", str(FOLDER / suite), f"--junitxml={report}", "--durations=5"]
        command += [f"--ignore={FOLDER / part}" for part in SUITES if _whole(part) == suite != part]
        command += [f"-pno:{plugin}" for plugin in WITHOUT.get(_whole(suite), ())]
        if _whole(suite) == "unit":
            # A thread for each of thousands of tests takes longer than many of them.
            command += ["-o", "timeout_method=signal"]
        output = None if shown else subprocess.PIPE
        errors = None if shown else subprocess.STDOUT
        done = subprocess.run(
            command, check=False, env=environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=errors, text=True
        )
        exit_code = done.returncode
        seconds = time.monotonic() - began
        passed, failed, skipped = _counts(report)
    if not shown:
        print(f"\n── {suite}, beside the others ──\n{done.stdout}", flush=True)
    return Run(suite, seconds, passed, failed or int(exit_code not in (0, NOTHING_COLLECTED)), skipped, exit_code)


def _whole(suite: str) -> str:
    """The suite of which it may be a part."""
    return suite.partition("/")[0]


def environment() -> dict[str, str]:
    """Compiled modules are kept: the tests start hundreds of processes, and each would compile the whole house again."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _counts(report: Path) -> tuple[int, int, int]:
    if not report.is_file():
        return 0, 0, 0
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    skipped = int(suite.get("skipped", 0))
    return int(suite.get("tests", 0)) - failed - skipped, failed, skipped


def print_summary(runs: list[Run], seconds: float) -> None:
    print("\nsuite        seconds  passed  failed  skipped")
    for each in runs:
        print(f"{each.suite:<12} {each.seconds:7.1f}  {each.passed:6}  {each.failed:6}  {each.skipped:7}")
    print(f"{'in all':<12} {seconds:7.1f}")
    passed, failed, skipped = (sum(getattr(each, what) for each in runs) for what in ("passed", "failed", "skipped"))
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
