"""What it takes to bring a table up to date: seconds, those of the cores, memory in use over time, bytes; and the same work with one failure half way."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from bench.writing.costs import cost_of
from ingestion.spark.core_seconds import core_s_between, tree_of
from ingestion.spark.session import jvm

_EVERY_S = 0.05
_PAGE = os.sysconf("SC_PAGE_SIZE")


class JobFailed(RuntimeError):
    """A job of ours has ended with an error; says which."""


class Cost(NamedTuple):
    """`memory_gib_s`: bytes in use over time, see MemoryMeter. `jobs`: of Spark."""

    seconds: float
    core_s: float
    memory_gib_s: float
    read: float
    written: float
    jobs: float


def measure(spark: SparkSession, work: Callable[[], object]) -> Cost:
    """Of this process, its JVM and all that these have started."""
    with MemoryMeter(spark) as memory:
        before = tree_of(os.getpid())
        cost = cost_of(spark, work)
        core_s = core_s_between(before, tree_of(os.getpid()))
    return Cost(cost.seconds, core_s, memory.byte_seconds / 2**30, cost.read, cost.written, cost.jobs)


class EndedBefore(RuntimeError):
    """The work had ended when it was to be stopped."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"It had ended after {seconds:.1f} s, before it was stopped.")
        self.seconds = seconds


def seconds_with_failure(spark: SparkSession, work: Callable[[], object], *, after_s: float) -> float:
    """Of `work` that is stopped once, after so many seconds, and then done from its beginning. Raises EndedBefore."""
    begun = time.perf_counter()
    with _stopped_after(spark, after_s):
        has_failed = _fails(work)
    if not has_failed:
        raise EndedBefore(time.perf_counter() - begun)
    work()
    return time.perf_counter() - begun


def _fails(work: Callable[[], object]) -> bool:
    """As work does whose Spark jobs were cancelled: by what Spark says of it, or by the report of a job of ours."""
    try:
        work()
    except (Py4JError, JobFailed):
        return True
    return False


@contextmanager
def _stopped_after(spark: SparkSession, seconds: float) -> Iterator[None]:
    """Then Spark's jobs are cancelled, once: of work that is between two jobs, the next."""
    has_ended = threading.Event()

    def stop() -> None:
        wait = seconds
        while not has_ended.wait(wait):
            if spark.sparkContext.statusTracker().getActiveJobsIds():
                spark.sparkContext.cancelAllJobs()
                return
            wait = _EVERY_S

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()


@dataclass
class MemoryMeter:
    """The heap in use, garbage included since a heap has to have room for it, and the memory of this process: what is there beyond what was there
    after a collection before, sampled and integrated over time."""

    spark: SparkSession
    samples: list[tuple[float, float]] = field(default_factory=list)
    has_ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> MemoryMeter:
        jvm(self.spark).java.lang.System.gc()
        self._sample()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.has_ended.set()
        self._thread.join()
        self._sample()

    @property
    def byte_seconds(self) -> float:
        return beyond_first(self.samples)

    def _watch(self) -> None:
        while not self.has_ended.wait(_EVERY_S):
            self._sample()

    def _sample(self) -> None:
        runtime: Any = jvm(self.spark).java.lang.Runtime.getRuntime()
        heap = runtime.totalMemory() - runtime.freeMemory()
        own = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
        self.samples.append((time.monotonic(), heap + own))


def beyond_first(samples: Sequence[tuple[float, float]]) -> float:
    """The area between the samples (when, how much) and the first of them; where they are below, there is none."""
    base = samples[0][1]
    return sum(
        (then - now) * (max(0.0, value - base) + max(0.0, later - base)) / 2
        for (now, value), (then, later) in pairwise(samples)
    )
