"""What a job costs in core-seconds, by the count of Linux and, on a cluster, of Spark."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)
_TICKS = os.sysconf("SC_CLK_TCK")


class CoreMeter:
    """Core-seconds from the moment when it is made.

    Of this process, its JVM and all that these have started: planning, garbage collection and what is done without Spark count like Spark's tasks.
    On a cluster also of the executors, by how long their tasks had a core, busy or not.

    A session runs one job at a time, so all of it is this job's, except for what else this process does meanwhile: `follow` looks at sources.
    Left out: the start of a session, executors that wait, and what databases, storages and HBase do for the job.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._before = self._core_s()

    def core_s(self) -> float | None:
        """None where it cannot be known: elsewhere than on Linux, or without an answer of Spark on a cluster."""
        now = self._core_s()
        # What a process that was killed had started is no longer in its tree.
        return None if now is None or self._before is None else round(max(0.0, now - self._before), 2)

    def _core_s(self) -> float | None:
        try:
            here = core_s_of_tree(_root())
            is_here = str(self._spark.sparkContext.master).startswith("local")
            return here if here is None or is_here else here + task_s(self._spark)
        except Exception:  # it never costs the job anything
            logger.warning("The core-seconds of a job could not be read", exc_info=True)
            return None


def _root() -> int:
    """Under spark-submit the JVM has started this process, else the other way round."""
    return os.getppid() if "PYSPARK_GATEWAY_PORT" in os.environ else os.getpid()


def core_s_of_tree(root: int) -> float | None:
    """Of the process `root` and all that it has started, since each began. None: there is no such process."""
    children, ticks = dict[int, list[int]](), dict[int, int]()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile, or is somebody else's
            # The program's name comes second, in parentheses, and may hold anything.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(folder.name))
            # Its own, and those of children that have ended: user and system.
            ticks[int(folder.name)] = sum(map(int, fields[11:15]))
    tree = [root] if root in ticks else []
    for each in tree:  # grows as it goes
        tree += children.get(each, ())
    return sum(ticks[each] for each in tree) / _TICKS if tree else None


def task_s(spark: SparkSession) -> float:
    """Of all tasks that have ended on executors, since the session began: how long each had its core."""
    context: Any = spark.sparkContext
    executors: Any = context._jsc.sc().statusStore().executorList(False)
    took_ms = [int(executors.apply(place).totalDuration()) for place in range(executors.size())]
    return sum(took_ms) / 1000
