"""What a job costs in core-seconds, by the count of Linux and, on a cluster, of Spark."""

from __future__ import annotations

import logging
import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)
_TICKS = os.sysconf("SC_CLK_TCK")


class _Process(NamedTuple):
    """`started`: in ticks since the machine was, as numbers are used again."""

    pid: int
    started: int


class CpuTicks(NamedTuple):
    """Of one process since it began: its own, and of its children that it has waited for at their end."""

    parent: int
    own: int
    of_ended: int


Tree = dict[_Process, CpuTicks]
_NEW = CpuTicks(0, 0, 0)


class CoreMeter:
    """Core-seconds from the moment when it is made.

    Of this process, its JVM and all that these have started: planning, garbage collection and what is done without Spark count like Spark's tasks.
    On a cluster also of the executors, by how long their tasks had a core, busy or not.

    A session runs one job at a time, so all of it is this job's, except for what else this process does meanwhile: `follow` looks at sources.
    Left out: the start of a session, executors that wait, and what databases, storages and HBase do for the job.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._before = self._counts()

    def core_s(self) -> float | None:
        """None where it cannot be known: elsewhere than on Linux, or without an answer of Spark on a cluster."""
        now = self._counts()
        if now is None or self._before is None:
            return None
        (tree_before, task_s_before), (tree, task_s_now) = self._before, now
        return round(core_s_between(tree_before, tree) + task_s_now - task_s_before, 2)

    def _counts(self) -> tuple[Tree, float] | None:
        """Of the processes here, and of tasks elsewhere."""
        try:
            is_here = str(self._spark.sparkContext.master).startswith("local")
            here = tree_of(_root())
            return (here, 0.0 if is_here else task_s(self._spark)) if here else None
        except Exception:  # it never costs the job anything
            logger.warning("The core-seconds of a job could not be read", exc_info=True)
            return None


def _root() -> int:
    """Under spark-submit the JVM has started this process, else the other way round."""
    return os.getppid() if "PYSPARK_GATEWAY_PORT" in os.environ else os.getpid()


def tree_of(root: int) -> Tree:
    """The process `root` and all that it has started. Empty: there is no such process."""
    children, every = dict[int, list[_Process]](), dict[int, tuple[_Process, CpuTicks]]()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile, or is somebody else's
            # The program's name comes second, in parentheses, and may hold anything.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            process = _Process(int(folder.name), int(fields[19]))
            parent, user, system, of_ended_user, of_ended_system = map(int, (fields[1], *fields[11:15]))
            children.setdefault(parent, []).append(process)
            every[process.pid] = process, CpuTicks(parent, user + system, of_ended_user + of_ended_system)
    tree = [every[root][0]] if root in every else []
    for process in tree:  # grows as it goes
        tree += children.get(process.pid, ())
    return {process: every[process.pid][1] for process in tree}


def core_s_between(before: Tree, now: Tree) -> float:
    """What a process that has ended did since `before` counts if its parent has waited for it: Linux tells it of no other."""
    did_before = Counter[int]()
    for process, ticks in before.items():
        if process not in now:
            did_before[ticks.parent] += ticks.own + ticks.of_ended
    spent = 0
    for process, ticks in now.items():
        earlier = before.get(process, _NEW)
        spent += ticks.own - earlier.own + max(0, ticks.of_ended - earlier.of_ended - did_before[process.pid])
    return spent / _TICKS


def task_s(spark: SparkSession) -> float:
    """Of all tasks that have ended on executors, since the session began: how long each had its core."""
    context: Any = spark.sparkContext
    executors: Any = context._jsc.sc().statusStore().executorList(False)
    took_ms = [int(executors.apply(place).totalDuration()) for place in range(executors.size())]
    return sum(took_ms) / 1000
