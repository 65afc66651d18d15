"""What a piece of work costs: seconds, Spark jobs, and bytes that this process and its JVM read and write."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from ingestion.spark.session import jvm_pid


class Cost(NamedTuple):
    seconds: float
    jobs: float
    read: float
    written: float

    @classmethod
    def median(cls, costs: Sequence[Cost]) -> Cost:
        return cls(*(statistics.median(values) for values in zip(*costs, strict=True)))


def cost_of(spark: SparkSession, work: Callable[[], object]) -> Cost:
    jobs, (read, written), begun = _jobs_so_far(spark), _bytes(spark), time.perf_counter()
    work()
    seconds, (read_then, written_then) = time.perf_counter() - begun, _bytes(spark)
    return Cost(seconds, _jobs_so_far(spark) - jobs, read_then - read, written_then - written)


def _jobs_so_far(spark: SparkSession) -> int:
    """As the scheduler counts them: what Spark's listeners know comes later, where the machine is busy."""
    context: Any = spark.sparkContext
    return int(context._jsc.sc().dagScheduler().numTotalJobs())


def _bytes(spark: SparkSession) -> tuple[int, int]:
    """Read and written, by the count of the system: files, pipes and all else that goes through `read` and `write`."""
    lines = [
        line.split(": ")
        for process in (os.getpid(), jvm_pid(spark))
        for line in Path(f"/proc/{process}/io").read_text().splitlines()
    ]
    read, written = (sum(int(value) for name, value in lines if name == wanted) for wanted in ("rchar", "wchar"))
    return read, written
