"""What Spark works on ends: its jobs are cancelled at their deadline, and a JVM that does not stop for that is killed.

Java's regular expressions, and whatever else goes round within one row, look at no interrupt. A new JVM is started for the
next scan.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Event
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ingestion.spark.session import ask_jvm_pid, do_tasks_go_on, is_jvm_alive, jvm_pid
from lakehub.source_databases.deadline import deadline
from quality.engines.scans.parts import CannotRead
from quality.engines.scans.scan import Limits

KILL_AFTER = timedelta(seconds=20)
"""A JVM has so long after the deadline to stop."""
_EXIT_TIMEOUT_S = 10
_GROUP_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
log = logging.getLogger(__name__)


@contextmanager
def job_deadline(spark: SparkSession, limits: Limits, what: str = "scan") -> Iterator[None]:
    """The jobs of this thread are cancelled when their time is over, and nothing of them goes on behind the block.

    Raises CannotRead where the JVM has ended, by us or by itself.
    """
    group, before = uuid4().hex, _group_of_thread(spark)
    watch = _JvmWatch(spark, group)
    spark.sparkContext.setJobGroup(group, f"lakehub {what}", interruptOnCancel=True)

    def cancel() -> None:
        watch.was_late.set()
        spark.sparkContext.cancelJobGroup(group)

    # Whoever has a group of its own for this thread, such as a job of ingestion, goes on with it.
    try:
        # Each by a thread of its own: to cancel is to ask the JVM, which may not answer.
        with deadline(limits.timeout, cancel), deadline(limits.timeout + KILL_AFTER, watch.kill):
            yield
        watch.end_late_tasks()
    except (PySparkException, Py4JError, OSError) as failed:
        if watch.was_killed.is_set():
            watch.wait_for_end()
            raise CannotRead(
                f"the {what} took longer than its timeout, and Spark was ended because it did not stop"
            ) from failed
        if isinstance(failed, Py4JError | OSError) and watch.has_ended():
            raise CannotRead(
                f"Spark ended during the {what}, as a rule for want of memory: ask for less, or raise LAKEHUB_SPARK_MEMORY"
            ) from failed
        raise
    finally:
        with suppress(Py4JError, OSError):
            for name, value in before.items():
                spark.sparkContext.setLocalProperty(name, value)


def _group_of_thread(spark: SparkSession) -> dict[str, Any]:
    return {name: spark.sparkContext.getLocalProperty(name) for name in _GROUP_PROPERTIES}


class _JvmWatch:
    """Over the JVM of one scan."""

    def __init__(self, spark: SparkSession, group: str) -> None:
        self._spark, self._group, self._process = spark, group, jvm_pid(spark)
        self.was_late, self.was_killed = Event(), Event()

    def kill(self) -> None:
        self.was_killed.set()
        with suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)

    def end_late_tasks(self) -> None:
        """They may go on for ever."""
        if self.was_late.is_set() and do_tasks_go_on(self._spark, self._group, KILL_AFTER.total_seconds()):
            log.warning(
                "Tasks of Spark did not stop at their deadline: its JVM is ended, the next scan starts a new one"
            )
            self.kill()
            self.wait_for_end()

    def has_ended(self) -> bool:
        """A connection that broke is seen a moment before the end of the process."""
        with suppress(Py4JError, OSError):
            ask_jvm_pid(self._spark)
            return False
        self.wait_for_end()
        return not is_jvm_alive(self._spark)

    def wait_for_end(self) -> None:
        gateway: Any = self._spark.sparkContext._gateway
        if gateway.proc is not None:
            with suppress(subprocess.TimeoutExpired):
                gateway.proc.wait(_EXIT_TIMEOUT_S)
