"""Jobs in this process, one after the other, on one Spark session that is kept: seconds per job instead of a JVM's start.

The session is renewed after some jobs, when its memory grows, when a job could not be stopped or left tasks that go on, and when a write failed but goes on.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from ingestion.domain.checkpoint import run_of_commit
from ingestion.launchers import LauncherConfig
from ingestion.spark.contract.guidance import Guidance
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import FAILED, JobReport
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.contract.write_lease import WriteLease
from ingestion.spark.execute import execute
from ingestion.spark.job import Job
from ingestion.spark.session import (
    close_session,
    do_tasks_go_on,
    is_jvm_alive,
    jvm_pid,
    killed_after,
    open_session,
    unusable_reason,
)
from lakehub.source_databases.interruption import Interruption, interruptible

logger = logging.getLogger(__name__)
STOP_TIMEOUT_S = 20
"""A cancelled job that still runs after this long is stuck, and so are tasks of a job that failed: their JVM is killed."""
_CANCEL_INTERVAL_S = 0.2


class WarmLauncher:
    def __init__(self, config: LauncherConfig) -> None:
        self._config = config
        self._session: SparkSession | None = None
        self._jobs = 0
        self._job: Job | None = None

    def run(
        self,
        spec: JobSpec,
        secrets: Mapping[str, str],
        lease: WriteLease | None = None,
        guidance: Guidance | None = None,
    ) -> JobReport:
        spark = self._open()
        try:
            with (
                killed_after(spark, spec.deadline_s + STOP_TIMEOUT_S),
                interruptible() as reading,
                _cancelled_after_deadline(spark, spec, reading, self._is_late),
            ):
                report = execute(
                    spec, spark=spark, secrets=secrets, on_start=self._remember, lease=lease, guidance=guidance
                )
        except (Py4JError, OSError) as problem:
            logger.exception("The JVM of the Spark session was lost around the job %s", spec.run_id)
            error = f"The JVM was lost, or did not answer within the deadline of {spec.deadline_s:g} s: {problem}"
            report = JobReport(run_id=spec.run_id, status=FAILED, error=error, timed_out=self._is_late())
        self._job = None
        self._jobs += 1
        self._renew_if_worn(spark, report, spec.run_id)
        return report

    def progress(self, run_id: str) -> JobProgress | None:
        job = self._job
        return job.progress() if job is not None and run_of_commit(job.spec.run_id) == run_id else None

    def _remember(self, job: Job) -> None:
        self._job = job

    def _is_late(self) -> bool:
        return self._job is not None and self._job.deadline_error() is not None

    def close(self) -> None:
        if self._session is not None:
            close_session(self._session)
            self._session, self._jobs = None, 0

    def _open(self) -> SparkSession:
        if self._session is not None and not is_jvm_alive(self._session):
            logger.warning("The JVM of the Spark session has ended: a new one is started")
            self.close()
        if self._session is None:
            for name, value in (("LAKEHUB_JAVA_HOME", self._config.java_home), ("LAKEHUB_HUDI_JAR", self._config.jar)):
                if value:
                    os.environ[name] = value
            self._session = open_session("lakehub", master=self._config.master, memory=self._config.memory)
        return self._session

    def _renew_if_worn(self, spark: SparkSession, report: JobReport, group: str) -> None:
        reason = self._renewal_reason(spark, report, group)
        if reason:
            logger.info("The Spark session is renewed: %s", reason)
            self.close()

    def _renewal_reason(self, spark: SparkSession, report: JobReport, group: str) -> str | None:
        if not is_jvm_alive(spark):
            return "its JVM has ended"
        if (reason := unusable_reason(spark)) is not None:
            return reason
        if self._jobs >= self._config.max_jobs:
            return f"it has run {self._jobs} jobs"
        try:
            with killed_after(spark, 2 * STOP_TIMEOUT_S):
                if report.status == FAILED and do_tasks_go_on(spark, group, STOP_TIMEOUT_S):
                    return "tasks of a job that failed do not stop"
            with killed_after(spark, STOP_TIMEOUT_S):
                spark.catalog.clearCache()
        except (Py4JError, OSError):
            return "its JVM does not answer"
        used = resident_mb(os.getpid()) + resident_mb(jvm_pid(spark))
        return f"it uses {used} MB" if used > self._config.max_mb else None


def resident_mb(process: int) -> int:
    """Memory of a process on Linux; 0 where it cannot be known."""
    status = Path(f"/proc/{process}/status")
    if not status.is_file():
        return 0
    lines = dict(line.partition(":")[::2] for line in status.read_text().splitlines())
    return int(lines.get("VmRSS", "0 kB").split()[0]) // 1024


@contextmanager
def _cancelled_after_deadline(
    spark: SparkSession, spec: JobSpec, reading: Interruption, is_late: Callable[[], bool]
) -> Iterator[None]:
    """All Spark work of the job is one group, which a thread cancels past the deadline, with what the job reads of a database then. That thread
    asks the JVM, so it is not the one that kills it."""
    spark.sparkContext.setJobGroup(spec.run_id, f"{spec.kind} of {spec.table.name}", interruptOnCancel=True)
    ended = Event()
    watch = Thread(target=_cancel_after_deadline, args=(spark, spec, reading, is_late, ended), daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()


def _cancel_after_deadline(
    spark: SparkSession, spec: JobSpec, reading: Interruption, is_late: Callable[[], bool], ended: Event
) -> None:
    """Again and again: what is cancelled is only what runs at that moment. By the job's clock, which may start later than this thread: a job
    that is ended before its own deadline would not know why."""
    wait = spec.deadline_s
    while not ended.wait(wait):
        wait = _CANCEL_INTERVAL_S
        if not is_late():
            continue
        reading.interrupt(f"the job took longer than its deadline of {spec.deadline_s:g} s")
        try:
            spark.sparkContext.cancelJobGroup(spec.run_id)
        except (Py4JError, OSError):
            return  # killed, or ended by itself
