"""One job from its spec to its report: the fence, the clock of its phases, its deadline, and errors told in words."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ingestion.domain.accounting import Counts
from ingestion.domain.schema import Schema, UnknownColumn, UnknownType
from ingestion.sources import SOURCES, Source, SourceConfig, SourceError
from ingestion.spark import fence
from ingestion.spark.jobs import JOBS, READ_ONLY
from ingestion.spark.report import FAILED, NOTHING_TO_DO, SUCCEEDED, JobReport, Written
from ingestion.spark.spec import JobSpec, SourceSpec, TableSpec, resolve_secret
from ingestion.spark.tables.timeline import LakeCommit, Timeline

logger = logging.getLogger(__name__)


class JobError(RuntimeError):
    """A job cannot do what its spec asks; the message says why, and what to do."""


class DeadlinePassed(JobError):
    """The job took longer than its spec allows."""


class Unbalanced(JobError):
    """Rows are not accounted for; nothing was written."""


_TOLD = (JobError, SourceError, UnknownColumn, UnknownType, fence.Fenced, ValueError, LookupError)
"""What is an answer rather than a bug: reported by its own words, without a traceback."""


@dataclass
class Job:
    """What every kind of job has at hand."""

    spec: JobSpec
    spark: SparkSession
    secrets: Mapping[str, str]
    phases: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    began_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def table(self) -> TableSpec:
        return self.spec.table

    @property
    def origin(self) -> SourceSpec:
        assert self.spec.source is not None  # the spec has checked it
        return self.spec.source

    @property
    def clock_ahead(self) -> timedelta:
        return timedelta(seconds=self.spec.clock_ahead_s)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.phases[name] = round(self.phases.get(name, 0.0) + time.monotonic() - began, 3)

    def late(self) -> str | None:
        """In words, where the deadline has passed."""
        if time.monotonic() - self.began <= self.spec.deadline_s:
            return None
        return f"The job took longer than its deadline of {self.spec.deadline_s:g} s. Raise the deadline, or read less at once."

    def alive(self) -> None:
        """Raises DeadlinePassed; asked between chunks and before the write."""
        late = self.late()
        if late:
            raise DeadlinePassed(late)

    def source(self) -> Source:
        origin = self.origin
        url = resolve_secret(origin.url_ref, self.secrets)
        config = SourceConfig(
            url, origin.object, origin.cursor_column, origin.overlap_s, origin.chunk_rows, origin.options
        )
        return SOURCES.get(origin.plugin)(config)

    def staging_uri(self) -> str:
        base = self.spec.staging_uri or f"{self.table.uri.rpartition('/')[0]}/.lakehub/staging"
        return f"{base.rstrip('/')}/{self.table.name}"

    def run_mark(
        self, counts: Counts, schema: Mapping[str, Any], source_from: datetime | None, source_upto: datetime | None
    ) -> dict[str, Any]:
        """What the commit tells about the run: enough to write its report again."""
        return {
            "run_id": self.spec.run_id,
            "kind": self.spec.kind,
            "counts": asdict(counts),
            "schema": dict(schema),
            "source_committed_from": _iso(source_from),
            "source_committed_upto": _iso(source_upto),
            "clock_ahead_s": self.spec.clock_ahead_s,
        }

    def done_before(self, timeline: Timeline) -> JobReport | None:
        """The report of this very run, where it has committed and then died before it could tell."""
        commit = timeline.commit_of_run(self.spec.run_id) if timeline.exists else None
        return None if commit is None else self.committed(commit)

    def committed(self, commit: LakeCommit) -> JobReport:
        run, changes = commit.run, commit.partitions.items()
        return JobReport(
            run_id=self.spec.run_id,
            status=SUCCEEDED,
            instant=commit.instant,
            completed_at=commit.completed_at.isoformat(),
            counts=Counts(**run["counts"]),
            written=Written(
                *(sum(getattr(each, what) for _, each in changes) for what in ("inserts", "updates", "deletes"))
            ),
            checkpoint=commit.checkpoint,
            partitions={name: each.rows for name, each in changes},
            schema=run["schema"],
            source_committed_from=run["source_committed_from"],
            source_committed_upto=run["source_committed_upto"],
        )

    def nothing_to_do(self, **known: Any) -> JobReport:
        return JobReport(run_id=self.spec.run_id, status=NOTHING_TO_DO, **known)


def execute(spec: JobSpec, *, spark: SparkSession, secrets: Mapping[str, str]) -> JobReport:
    """Run one job. What goes wrong is a report too, with the status `failed`."""
    job = Job(spec, spark, secrets)
    try:
        with nullcontext() if spec.kind in READ_ONLY else fence.hold(spark, spec.table.uri, wait_s=spec.lock_wait_s):
            job.phases["fence"] = round(time.monotonic() - job.began, 3)
            report = JOBS.get(spec.kind)(job)
    except _TOLD as problem:
        report = JobReport(run_id=spec.run_id, status=FAILED, error=f"{type(problem).__name__}: {problem}")
    except (Py4JError, PySparkException) as problem:
        error = job.late() or java_message(problem)
        logger.error("The job %s failed in the JVM: %s", spec.run_id, error, exc_info=job.late() is None)
        report = JobReport(run_id=spec.run_id, status=FAILED, error=error)
    except Exception as problem:
        # A bug, or the machine's fault: who asked for the job is told all the same.
        logger.exception("The job %s failed", spec.run_id)
        report = JobReport(run_id=spec.run_id, status=FAILED, error=f"{type(problem).__name__}: {problem}")
    return replace(report, phases=job.phases | {"total": round(time.monotonic() - job.began, 3)})


def java_message(problem: Exception) -> str:
    """The first and the innermost message of a Java error, without the stack."""
    text = str(problem.java_exception.toString()) if isinstance(problem, Py4JJavaError) else str(problem)
    cause = problem.java_exception if isinstance(problem, Py4JJavaError) else None
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    innermost = "" if cause is None else str(cause.toString())
    first = text.splitlines()[0] if text else type(problem).__name__
    return first if innermost in ("", text) else f"{first} because of {innermost.splitlines()[0]}"


def schema_facts(schema: Schema, **facts: Any) -> dict[str, Any]:
    return {"columns": schema.types, **facts}


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()
