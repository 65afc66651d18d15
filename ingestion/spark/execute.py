"""Runs one job from its spec to its report: permit, deadline, and errors in words."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import SparkSession

from ingestion.domain.column_types import UnknownType
from ingestion.domain.schema import UnknownColumn
from ingestion.index.client import IndexUnavailable
from ingestion.sources import SourceError
from ingestion.spark.contract.guidance import Guidance, NoGuidance
from ingestion.spark.contract.job_kinds import EXCLUSIVE_KINDS, KEYLESS_KINDS, READ_ONLY_KINDS
from ingestion.spark.contract.report import FAILED, INDEX_AWAY, PUT_OFF, JobReport
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.contract.write_lease import LeaseTaken, LeaseUnanswered, NoLease, WriteLease
from ingestion.spark.core_seconds import CoreMeter
from ingestion.spark.etl.audits import AuditRefused, refused_report
from ingestion.spark.etl.row_errors import bug_without_rows, error_without_rows, has_own_words, raised_in_python
from ingestion.spark.global_index import job_use
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job, JobError, logger
from ingestion.spark.jobs import JOBS
from ingestion.spark.session import does_jvm_answer
from ingestion.spark.tables import fence
from ingestion.spark.write_permit import hold_write_permit

_EXPECTED_ERRORS = (
    JobError,
    SourceError,
    UnknownColumn,
    UnknownType,
    fence.TableFenced,
    LeaseUnanswered,
    ValueError,
    LookupError,
)
"""What is an answer rather than a bug: reported by its own words, without a traceback; but see `_is_told`."""
_UNAVAILABLE_TO_TASK = re.compile(
    rf"^{re.escape(IndexUnavailable.__module__)}\.{IndexUnavailable.__name__}: (.+)$", re.MULTILINE
)
"""So ends the traceback of a task of Spark that HBase does not answer."""


def execute(
    spec: JobSpec,
    *,
    spark: SparkSession,
    secrets: Mapping[str, str],
    on_start: Callable[[Job], None] = lambda job: None,
    lease: WriteLease | None = None,
    guidance: Guidance | None = None,
) -> JobReport:
    """Run one job. What goes wrong is a report too, with the status `failed`. `on_start` gets the job, to ask how far it is.

    `lease` is asked before the job writes; None: the table's fence alone keeps other writers out.
    `guidance` is asked between the commits of a load whether it is paused, and after each chunk whether more may be read.
    """
    job = Job(spec, spark, secrets, lease=lease or NoLease(), guidance=guidance or NoGuidance())
    meter = CoreMeter(spark)
    on_start(job)
    with job_use.use_of_job(job.guidance, job.check_deadline, job.phase) as use:
        job.count_index_servers = partial(use.count_servers, spec.table)
        report = _executed(job)
        # One that failed may have failed because HBase does not answer.
        index_use = use.told(spec.table, with_servers=report.status not in (FAILED, INDEX_AWAY))
    return replace(
        report,
        timed_out=report.status == FAILED and job.deadline_error() is not None,
        phases=job.phases | {"total": round(time.monotonic() - job.started_monotonic, 3)},
        core_s=meter.core_s(),
        index_use=index_use,
    )


def _executed(job: Job) -> JobReport:
    spec, spark = job.spec, job.spark
    try:
        with hold_write_permit(job) if spec.kind in EXCLUSIVE_KINDS else nullcontext():
            if spec.kind not in (*EXCLUSIVE_KINDS, *READ_ONLY_KINDS):
                fence.clean_up_after_killed_writer(
                    spark, spec.table.uri, wait_s=spec.lock_wait_s, beside=spec.table.uris_beside
                )
                if spec.kind not in KEYLESS_KINDS:
                    index: Index = INDEXES.get(spec.table.index)()
                    index.prepare(spark, spec.table)
            return JOBS.get(spec.kind)(job)
    except LeaseTaken as problem:
        return JobReport(run_id=spec.run_id, status=PUT_OFF, error=str(problem))
    except IndexUnavailable as problem:
        return JobReport(run_id=spec.run_id, status=INDEX_AWAY, error=str(problem))
    except AuditRefused as refused:
        return refused_report(job, refused)
    except _EXPECTED_ERRORS as problem:
        # At the deadline the launcher ends what is being read, and the source only says that it was interrupted.
        late = job.deadline_error() if isinstance(problem, SourceError) else None
        if not _is_told(job, problem):
            logger.exception("The job %s failed", spec.run_id)
        return JobReport(run_id=spec.run_id, status=FAILED, error=late or _words(job, problem))
    except (Py4JError, PySparkException) as problem:
        if unavailable := _UNAVAILABLE_TO_TASK.search(str(problem)):
            return JobReport(run_id=spec.run_id, status=INDEX_AWAY, error=unavailable[1])
        error = job.deadline_error() or _jvm_ended(spark, problem)
        words = error or java_message(problem)
        logger.error("The job %s failed in the JVM: %s", spec.run_id, words, exc_info=job.deadline_error() is None)
        if error is None and spec.pipeline is not None:
            words = error_without_rows(problem, spark) or words
        return JobReport(run_id=spec.run_id, status=FAILED, error=words)
    except Exception as problem:
        # A bug, or the machine's fault: who asked for the job is told all the same.
        logger.exception("The job %s failed", spec.run_id)
        # A JVM that was killed at the deadline refuses whoever tidies up.
        late = (job.deadline_error() or _jvm_ended(spark, problem)) if isinstance(problem, ConnectionError) else None
        return JobReport(run_id=spec.run_id, status=FAILED, error=late or _words(job, problem))


def _is_told(job: Job, problem: Exception) -> bool:
    return job.spec.pipeline is None or has_own_words(problem)


def _words(job: Job, problem: Exception) -> str:
    """In a job of a pipeline, without those of Python's own errors and of its libraries: they may have values of rows."""
    return f"{type(problem).__name__}: {problem}" if _is_told(job, problem) else bug_without_rows(problem)


def _jvm_ended(spark: SparkSession, problem: Exception) -> str | None:
    """In words, where the JVM is gone: what py4j raises then names whatever was asked for last, as if it had not been found."""
    if isinstance(problem, (Py4JJavaError, PySparkException)) or does_jvm_answer(spark):
        return None
    return "The job's JVM ended while the job ran: it was killed, or the machine has no memory left. Run the job again."


def java_message(problem: Exception) -> str:
    """The first and the innermost message of a Java error, or the message of a task in Python, without the stack."""
    if isinstance(problem, PythonException) and (raised := raised_in_python(str(problem))):
        return raised.line
    text = str(problem.java_exception.toString()) if isinstance(problem, Py4JJavaError) else str(problem)
    cause = problem.java_exception if isinstance(problem, Py4JJavaError) else None
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    innermost = "" if cause is None else str(cause.toString())
    first = text.splitlines()[0] if text else type(problem).__name__
    return first if innermost in ("", text) else f"{first} because of {innermost.splitlines()[0]}"
