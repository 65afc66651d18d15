"""What each contender shares: its arguments, its repeats and the line that it ends with. Only the standard library."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.suite import Check, suite

CheckResults = Mapping[str, tuple[bool, float | None]]
"""By the name of the check: whether it holds, and the value behind it where the tool gives one."""


@dataclass(frozen=True)
class Task:
    """What `python -m bench.contenders.NAME ENGINE FOLDER COPIES REPEATS` asks for; FOLDER has plain/ and lake/."""

    engine: str
    folder: Path
    copies: int
    repeats: int

    @property
    def checks(self) -> tuple[Check, ...]:
        return suite(self.copies)

    @property
    def glob(self) -> str:
        return f"{self.folder}/plain/*.parquet"


def run_contender(version: str, prepare: Callable[[Task], Callable[[], CheckResults]]) -> int:
    """`prepare` makes ready what a user makes ready once; what it returns is a whole run from the data to the results."""
    engine, folder, copies, repeats = sys.argv[1:]
    task = Task(engine, Path(folder), int(copies), int(repeats))
    once = prepare(task)
    seconds: list[float] = []
    worked: list[float] = []
    results: CheckResults = {}
    # The first is a warm-up: code is compiled, files come into the memory of the machine.
    for _ in range(task.repeats + 1):
        begun, worked_before = time.perf_counter(), _processor_s()
        results = once()
        seconds.append(time.perf_counter() - begun)
        worked.append(_processor_s() - worked_before)
    output = {
        "version": version,
        "first": seconds[0],
        "seconds": seconds[1:],
        "processor": min(worked[1:]),
        "found": results,
    }
    print(json.dumps(output), flush=True)
    return 0


def _processor_s() -> float:
    """What all threads of this process and of those that it has started, such as a JVM, have worked. Linux only."""
    ticks = os.sysconf("SC_CLK_TCK")
    return sum(sum(_stat_fields(process)[_USER : _USER + 2]) / ticks for process in _process_tree(os.getpid()))


_USER = 11
"""The place of the time in user mode in /proc/PID/stat after the name; the time in the system follows."""


def _stat_fields(process: int) -> list[int]:
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        # It has ended since it was listed.
        return [0] * (_USER + 2)
    return [0, *(int(word) for word in text.rpartition(")")[2].split()[1:])]


def _process_tree(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    children = [int(word) for file in tasks for word in file.read_text().split()]
    return [process, *(descendant for child in children for descendant in _process_tree(child))]


def judge_values(checks: tuple[Check, ...], values: Mapping[str, float]) -> CheckResults:
    """For tools that measure and leave the comparing to others."""
    return {check.name: (check.holds(values[check.name]), float(values[check.name])) for check in checks}
