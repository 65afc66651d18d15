"""What each contender shares: its arguments, its repeats and the line that it ends with. Only the standard library."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.suite import Check, suite

Found = Mapping[str, tuple[bool, float | None]]
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


def compete(version: str, prepare: Callable[[Task], Callable[[], Found]]) -> int:
    """`prepare` makes ready what a user makes ready once; what it returns is a whole run from the data to the results."""
    engine, folder, copies, repeats = sys.argv[1:]
    task = Task(engine, Path(folder), int(copies), int(repeats))
    once = prepare(task)
    seconds: list[float] = []
    found: Found = {}
    # The first is a warm-up: code is compiled, files come into the memory of the machine.
    for _ in range(task.repeats + 1):
        begun = time.perf_counter()
        found = once()
        seconds.append(time.perf_counter() - begun)
    print(json.dumps({"version": version, "first": seconds[0], "seconds": seconds[1:], "found": found}), flush=True)
    return 0


def judged(checks: tuple[Check, ...], values: Mapping[str, float]) -> Found:
    """For tools that measure and leave the comparing to others."""
    return {check.name: (check.holds(values[check.name]), float(values[check.name])) for check in checks}
