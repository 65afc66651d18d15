"""What every kind of job has at hand: its spec, session and secrets, the clock of its phases, its deadline, its source."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from hashlib import sha256
from typing import Any

from pyspark.sql import SparkSession

from ingestion.domain.accounting import RowCounts
from ingestion.domain.batch_limits import BatchLimits
from ingestion.domain.checkpoint import Checkpoint, commit_id_of, next_commit_id, run_of_commit, unfinished_snapshot
from ingestion.domain.pace import Pace, piece_rows
from ingestion.domain.schema import Schema
from ingestion.raw_chunks.folders import RawFolder
from ingestion.sources import SOURCES, RawChunks, Source, SourceConfig, UnusableCursors
from ingestion.spark.contract.guidance import Guidance, NoGuidance
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import NOTHING_TO_DO, SUCCEEDED, JobReport, WrittenKeys
from ingestion.spark.contract.secret_refs import resolve_secret, resolved_options
from ingestion.spark.contract.spec import JobSpec, PipelineSpec, SourceSpec, TableSpec
from ingestion.spark.contract.write_lease import POLL_INTERVAL_S, NoLease, WriteLease
from ingestion.spark.reading_pace import ReadingPace
from ingestion.spark.tables.timeline import LakeCommit, Timeline, open_storage

logger = logging.getLogger(__name__)


class JobError(RuntimeError):
    """A job cannot do what its spec asks; the message says why, and what to do."""


class DeadlinePassed(JobError):
    """The job took longer than its spec allows."""


class UnbalancedCounts(JobError):
    """Rows are not accounted for; nothing was written."""


def refused_folder(table_uri: str) -> str:
    folder, _, name = table_uri.rstrip("/").rpartition("/")
    return f"{folder}/.lakehub/refused/{name}"


@dataclass
class Job:
    """What every kind of job has at hand."""

    spec: JobSpec
    spark: SparkSession
    secrets: Mapping[str, str]
    lease: WriteLease = field(default_factory=NoLease)
    guidance: Guidance = field(default_factory=NoGuidance)
    may_write: bool = False
    """It holds the permit to write its table."""
    phases: dict[str, float] = field(default_factory=dict)
    started_monotonic: float = field(default_factory=time.monotonic)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    rows_read: int = 0
    rows_total: int | None = None
    rows_before: int = 0
    """Of `rows_read`, those of earlier commits."""
    rows_paid: int = 0
    """Of all readings: what the launcher was told that was read of the source."""
    corrected_entries: int = 0
    """Keys that the index had in files which do not hold them; it has been put right."""
    count_index_servers: Callable[[], int] = lambda: 0
    """See JobProgress; asked from any thread."""
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
    def pipeline_spec(self) -> PipelineSpec:
        assert self.spec.pipeline is not None  # who makes rows by a pipeline has looked
        return self.spec.pipeline

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

    @cached_property
    def reading_pace(self) -> ReadingPace:
        """Of all that the job reads of its source."""
        origin = self.source_spec
        pace = None if origin.rows_per_s is None else Pace(origin.rows_per_s)
        return ReadingPace(self.check_deadline, pace, self.pay_for_rows if origin.is_paid_for else None)

    def tell_rows(self, rows: int) -> None:
        """`rows`: read for the commit that is being prepared."""
        self.rows_read = self.rows_before + rows

    def pay_for_rows(self, rows: int) -> None:
        """Waits as long as whoever launched the job wants the source to be spared. Raises DeadlinePassed."""
        self.rows_paid += rows
        while not self.guidance.may_read_on(self.rows_paid):
            self.check_deadline()
            time.sleep(POLL_INTERVAL_S)

    def progress(self) -> JobProgress:
        """How far it is, asked from any thread. Raises what Spark raises where it is gone."""
        name, began = self.current_phase or ("start", self.started_monotonic)
        done, total = (0, 0) if name == "read" else _stage_tasks(self.spark)
        seconds, servers = round(time.monotonic() - began, 1), self.count_index_servers()
        return JobProgress(name, seconds, self.rows_read, self.rows_total, done, total, servers)

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

    @property
    def has_time_for_more(self) -> bool:
        """May a run that has committed begin another commit? What it read last took at most half of its time."""
        return time.monotonic() - self.started_monotonic <= self.spec.deadline_s / 2

    def begin_next_commit(self) -> None:
        """The timeline tells the commits of a run apart."""
        self.spec = replace(self.spec, run_id=next_commit_id(self.spec.run_id))
        self.rows_before = self.rows_read

    def go_on_after(self, commits: int) -> None:
        """So many were made before: none of their numbers is given again."""
        self.spec = replace(self.spec, run_id=commit_id_of(run_of_commit(self.spec.run_id), commits + 1))

    @property
    def reading_limits(self) -> BatchLimits:
        """For the commit that is begun now: reading it leaves as much time for the write. None where the spec has none."""
        limits, left = self.source_spec.limits, self.spec.deadline_s - (time.monotonic() - self.started_monotonic)
        if limits.is_unlimited:
            return limits
        most = max(1.0, left / 2)
        return replace(limits, seconds=most if limits.seconds is None else min(limits.seconds, most))

    def open_source(self) -> Source:
        origin = self.source_spec
        url = resolve_secret(origin.url_ref, self.secrets)
        config = SourceConfig(
            url,
            origin.object,
            origin.cursor_column,
            origin.overlap_s,
            piece_rows(origin.chunk_rows, origin.rows_per_s),
            resolved_options(origin, self.secrets),
            self.table.record_key,
            on_rows_read=self.reading_pace.after_piece,
            raw=self._raw_chunks,
            readers=origin.readers,
        )
        return SOURCES.get(origin.plugin)(config)

    @cached_property
    def raw_folder(self) -> RawFolder | None:
        """None: nothing of this table lands."""
        return None if self.spec.raw is None else RawFolder(*open_storage(self.spec.raw.uri))

    @property
    def _raw_chunks(self) -> RawChunks | None:
        if self.raw_folder is None or self.spec.raw is None:
            return None
        return RawChunks(self.raw_folder, run_of_commit(self.spec.run_id), self.spec.raw.is_read)

    def require_checkpoint(self, timeline: Timeline) -> Checkpoint:
        """Where the job goes on. Raises JobError, which says how to get one."""
        checkpoint = timeline.checkpoint()
        if checkpoint is None:
            raise JobError(
                f"The table at {timeline.uri} has no commit that carries a checkpoint: it was not loaded by a bootstrap, or that one is too long ago. "
                "Bootstrap it (with `replace` where it has rows)."
            )
        if unfinished_snapshot(checkpoint.position) is not None:
            raise JobError(
                f"The bootstrap of the table at {timeline.uri} has loaded a part of it and has not ended. Bootstrap it again: it goes on where it was."
            )
        return checkpoint

    def staging_uri(self) -> str:
        base = self.spec.staging_uri or f"{self.table.uri.rpartition('/')[0]}/.lakehub/staging"
        return f"{base.rstrip('/')}/{self.table.name}"

    @property
    def refused_uri(self) -> str:
        """Where rows are kept that were made for the table and did not pass an audit: the newest of each kind of job, and of each set of partitions."""
        of_what = (
            sha256("\0".join(sorted(self.spec.partitions)).encode()).hexdigest()[:16] if self.spec.partitions else "all"
        )
        return f"{refused_folder(self.table.uri)}/{self.spec.kind}-{of_what}"

    @property
    def ends_at(self) -> datetime:
        """By the wall clock: past its deadline it writes nothing more."""
        return self.started_at + timedelta(seconds=self.spec.deadline_s)

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
            **({"corrected_entries": self.corrected_entries} if self.corrected_entries else {}),
        }

    def report_of_earlier_attempt(self, timeline: Timeline, *, after: str = "") -> JobReport | None:
        """The report of this very run, where it has committed (`after` an instant) and then died before it could tell."""
        commit = timeline.commit_of_run(self.spec.run_id, after=after) if timeline.exists else None
        return None if commit is None else self.report_of(commit)

    def own_commits(self, commits: Iterable[LakeCommit]) -> list[LakeCommit]:
        """Those of this run, whichever of its attempts made them."""
        run = run_of_commit(self.spec.run_id)
        return [commit for commit in commits if run_of_commit(commit.run.get("run_id", "")) == run]

    def report_of(self, commit: LakeCommit) -> JobReport:
        run = commit.run
        return JobReport(
            run_id=run_of_commit(self.spec.run_id),
            status=SUCCEEDED,
            instant=commit.instant,
            completed_at=commit.completed_at.isoformat(),
            counts=RowCounts(**run["counts"]),
            written=WrittenKeys(*commit.written),
            checkpoint=commit.checkpoint,
            partitions={name: sum(change) for name, change in commit.partitions.items()},
            schema=run["schema"],
            source_committed_from=run["source_committed_from"],
            source_committed_upto=run["source_committed_upto"],
            unusable_cursors=run.get("unusable_cursors", {}),
        )

    def nothing_to_do_report(self, **facts: Any) -> JobReport:
        return JobReport(run_id=run_of_commit(self.spec.run_id), status=NOTHING_TO_DO, **facts)


def schema_facts(schema: Schema, **facts: Any) -> dict[str, Any]:
    return {"columns": schema.types, **facts}


def _cursor_facts(source: SourceSpec | None, unusable: UnusableCursors | None) -> dict[str, Any]:
    if source is None or unusable is None:
        return {}
    return {"column": source.cursor_column, "rows": unusable.rows, "sample": list(unusable.sample)}


def _iso_utc(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()


def _stage_tasks(spark: SparkSession) -> tuple[int, int]:
    """(done, all) tasks of the stages that run now: of one job where the session runs one at a time."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)
