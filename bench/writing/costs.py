"""What a piece of work costs: seconds, Spark jobs, bytes that its processes read and write, and the most memory that they had."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from lakehub.processes.supervisor.process_tree import descendants

_TICKS = os.sysconf("SC_CLK_TCK")
_FORGET_PEAKS = "5"


class Cost(NamedTuple):
    """`peak`: bytes of memory, each process at its most. A JVM keeps what it has had."""

    seconds: float
    jobs: float
    read: float
    written: float
    peak: float = 0.0

    @classmethod
    def median(cls, costs: Sequence[Cost]) -> Cost:
        return cls(*(statistics.median(values) for values in zip(*costs, strict=True)))


def cost_of(spark: SparkSession, work: Callable[[], object], *, beside: Collection[int] = ()) -> Cost:
    """Of this process, its JVM and the workers of Python. `beside`: servers whose reading and writing counts, too."""
    _forget_peaks()
    jobs, before, begun = _jobs_so_far(spark), _bytes(beside), time.perf_counter()
    work()
    seconds, (read, written) = time.perf_counter() - begun, moved_between(before, _bytes(beside))
    return Cost(seconds, _jobs_so_far(spark) - jobs, read, written, _peak())


def moved_between(before: Mapping[int, tuple[int, int]], now: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
    """Bytes read and written by those that still run: what a worker had moved before it ended is not taken off."""
    read = sum(moved[0] - before.get(process, (0, 0))[0] for process, moved in now.items())
    written = sum(moved[1] - before.get(process, (0, 0))[1] for process, moved in now.items())
    return read, written


def core_seconds(processes: Iterable[int]) -> float:
    """Of those that run, since each began."""
    fields = [Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split() for process in processes]
    return sum(int(each[11]) + int(each[12]) for each in fields) / _TICKS


def _jobs_so_far(spark: SparkSession) -> int:
    """As the scheduler counts them: what Spark's listeners know comes later, where the machine is busy."""
    context: Any = spark.sparkContext
    return int(context._jsc.sc().dagScheduler().numTotalJobs())


def _bytes(beside: Collection[int]) -> dict[int, tuple[int, int]]:
    """By process read and written, by the count of the system: files, pipes and all else that goes through `read` and `write`."""
    by_process = {process: dict(_numbers("io", (process,))) for process in (*_own(), *beside)}
    return {process: (counts["rchar"], counts["wchar"]) for process, counts in by_process.items() if counts}


def _peak() -> int:
    return 1024 * sum(value for name, value in _numbers("status", _own()) if name == "VmHWM")


def _own() -> tuple[int, ...]:
    return os.getpid(), *descendants(os.getpid())


def _forget_peaks() -> None:
    for process in _own():
        with suppress(FileNotFoundError, ProcessLookupError):  # a worker that has ended
            Path(f"/proc/{process}/clear_refs").write_text(_FORGET_PEAKS)


def _numbers(file: str, processes: Iterable[int]) -> list[tuple[str, int]]:
    lines = []
    for process in processes:
        with suppress(FileNotFoundError, ProcessLookupError):  # a worker that has ended
            lines += Path(f"/proc/{process}/{file}").read_text().splitlines()
    pairs = (line.partition(":") for line in lines)
    values = ((name, value.split()) for name, _, value in pairs)
    return [(name, int(value[0])) for name, value in values if value and value[0].isdigit()]
