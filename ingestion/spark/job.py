"""What every kind of job has at hand: its spec, session and secrets, the clock of its phases, its deadline, its source."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from ingestion.domain.accounting import RowCounts
from ingestion.domain.checkpoint import Checkpoint
from ingestion.domain.schema import Schema
from ingestion.sources import SOURCES, Source, SourceConfig, UnusableCursors
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import NOTHING_TO_DO, SUCCEEDED, JobReport, WrittenKeys
from ingestion.spark.contract.spec import JobSpec, SourceSpec, TableSpec, resolve_secret
from ingestion.spark.session import stage_tasks
from ingestion.spark.tables.timeline import LakeCommit, Timeline

logger = logging.getLogger(__name__)


class JobError(RuntimeError):
    """A job cannot do what its spec asks; the message says why, and what to do."""


class DeadlinePassed(JobError):
    """The job took longer than its spec allows."""


class UnbalancedCounts(JobError):
    """Rows are not accounted for; nothing was written."""


@dataclass
class Job:
    """What every kind of job has at hand."""

    spec: JobSpec
    spark: SparkSession
    secrets: Mapping[str, str]
    phases: dict[str, float] = field(default_factory=dict)
    started_monotonic: float = field(default_factory=time.monotonic)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    rows_read: int = 0
    rows_total: int | None = None
    current_phase: tuple[str, float] | None = None
    """Its name and when it began, by the monotonic clock: one tuple, so that another thread never reads half of it."""

    @property
    def table(self) -> TableSpec:
        return self.spec.table

    @property
    def source_spec(self) -> SourceSpec:
        assert self.spec.source is not None  # the spec has checked it
        return self.spec.source

    @property
    def clock_ahead(self) -> timedelta:
        return timedelta(seconds=self.spec.clock_ahead_s)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        self.current_phase = (name, began)
        try:
            yield
        finally:
            self.phases[name] = round(self.phases.get(name, 0.0) + time.monotonic() - began, 3)

    def tell_rows(self, rows: int) -> None:
        self.rows_read = rows

    def progress(self) -> JobProgress:
        """How far it is, asked from any thread. Raises what Spark raises where it is gone."""
        name, began = self.current_phase or ("start", self.started_monotonic)
        done, total = (0, 0) if name == "read" else stage_tasks(self.spark)
        return JobProgress(name, round(time.monotonic() - began, 1), self.rows_read, self.rows_total, done, total)

    def deadline_error(self) -> str | None:
        """In words, where the deadline has passed."""
        if time.monotonic() - self.started_monotonic <= self.spec.deadline_s:
            return None
        return f"The job took longer than its deadline of {self.spec.deadline_s:g} s. Raise the deadline, or read less at once."

    def check_deadline(self) -> None:
        """Raises DeadlinePassed; asked between chunks and before the write."""
        late = self.deadline_error()
        if late:
            raise DeadlinePassed(late)

    def open_source(self) -> Source:
        origin = self.source_spec
        url = resolve_secret(origin.url_ref, self.secrets)
        config = SourceConfig(
            url, origin.object, origin.cursor_column, origin.overlap_s, origin.chunk_rows, origin.options
        )
        return SOURCES.get(origin.plugin)(config)

    def require_checkpoint(self, timeline: Timeline) -> Checkpoint:
        """Where the job goes on. Raises JobError, which says how to get one."""
        checkpoint = timeline.checkpoint()
        if checkpoint is None:
            raise JobError(
                f"The table at {timeline.uri} has no commit that carries a checkpoint: it was not loaded by a bootstrap, or that one is too long ago. "
                "Bootstrap it (with `replace` where it has rows)."
            )
        return checkpoint

    def staging_uri(self) -> str:
        base = self.spec.staging_uri or f"{self.table.uri.rpartition('/')[0]}/.lakehub/staging"
        return f"{base.rstrip('/')}/{self.table.name}"

    def run_metadata(
        self,
        counts: RowCounts,
        schema: Mapping[str, Any],
        source_from: datetime | None,
        source_upto: datetime | None,
        unusable_cursors: UnusableCursors | None = None,
    ) -> dict[str, Any]:
        """What the commit tells about the run: enough to write its report again."""
        return {
            "run_id": self.spec.run_id,
            "kind": self.spec.kind,
            "counts": asdict(counts),
            "schema": dict(schema),
            "source_committed_from": _iso_utc(source_from),
            "source_committed_upto": _iso_utc(source_upto),
            "clock_ahead_s": self.spec.clock_ahead_s,
            "unusable_cursors": _cursor_facts(self.spec.source, unusable_cursors),
        }

    def report_of_earlier_attempt(self, timeline: Timeline) -> JobReport | None:
        """The report of this very run, where it has committed and then died before it could tell."""
        commit = timeline.commit_of_run(self.spec.run_id) if timeline.exists else None
        return None if commit is None else self.report_of(commit)

    def report_of(self, commit: LakeCommit) -> JobReport:
        run, changes = commit.run, commit.partitions.items()
        return JobReport(
            run_id=self.spec.run_id,
            status=SUCCEEDED,
            instant=commit.instant,
            completed_at=commit.completed_at.isoformat(),
            counts=RowCounts(**run["counts"]),
            written=WrittenKeys(
                *(
                    sum(getattr(change, operation) for _, change in changes)
                    for operation in ("inserts", "updates", "deletes")
                )
            ),
            checkpoint=commit.checkpoint,
            partitions={name: sum(change) for name, change in changes},
            schema=run["schema"],
            source_committed_from=run["source_committed_from"],
            source_committed_upto=run["source_committed_upto"],
            unusable_cursors=run.get("unusable_cursors", {}),
        )

    def nothing_to_do_report(self, **facts: Any) -> JobReport:
        return JobReport(run_id=self.spec.run_id, status=NOTHING_TO_DO, **facts)


def schema_facts(schema: Schema, **facts: Any) -> dict[str, Any]:
    return {"columns": schema.types, **facts}


def _cursor_facts(source: SourceSpec | None, unusable: UnusableCursors | None) -> dict[str, Any]:
    if source is None or unusable is None:
        return {}
    return {"column": source.cursor_column, "rows": unusable.rows, "sample": list(unusable.sample)}


def _iso_utc(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()
