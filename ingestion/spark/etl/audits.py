"""Audits: what a pipeline is about to commit has to pass its tests, or nothing is committed and what was made is kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Protocol

from pyspark.sql import DataFrame

from ingestion.domain.checkpoint import Position
from ingestion.domain.pipelines.view_names import INPUTS
from ingestion.spark.contract.report import REFUSED, JobReport
from ingestion.spark.job import Job, JobError
from ingestion.spark.loading.staging import StagedBatch, keep_rows, remove_rows
from ingestion.spark.tables.hudi import META_COLUMNS, read_at
from lakehub.kernel.registry import Registry


@dataclass(frozen=True)
class AuditedRows:
    """`rows`: what the table is to hold, after the commit, of the partitions that it touches. `partitions`: these, also those that are left without rows; None:
    those of the rows. `tables`: the inputs, by what the SELECT calls them."""

    rows: DataFrame
    record_key: tuple[str, ...]
    partition_column: str | None
    partitions: Collection[str] | None
    tables: Mapping[str, DataFrame]


@dataclass(frozen=True)
class Refusal:
    """An audit that rows do not pass. `partitions`: in which, the worst first; empty: the table has none. `observed`, `threshold`, `cause`: of the worst,
    in words. `columns` and `rows`: some of the rows that are the reason, as texts."""

    audit: str
    test: str
    partitions: tuple[str, ...] = ()
    observed: str = ""
    threshold: str = ""
    cause: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        seen = self.cause or f"it is {self.observed}, and has to be {self.threshold}".removesuffix(", and has to be ")
        where = f" in `{self.partitions[0]}`" if self.partitions else ""
        more = f" and {len(self.partitions) - 1} more" if len(self.partitions) > 1 else ""
        return f"`{self.audit}`{where}{more}: {seen}"


class Auditor(Protocol):
    """Judges all `tests`, by name. What cannot be judged is refused."""

    def __call__(self, tests: Mapping[str, str], audited: AuditedRows, *, now: datetime) -> Sequence[Refusal]: ...


class AuditRefused(JobError):
    """The rows do not pass. `position`: up to where the inputs were read; None: it does not move."""

    def __init__(self, table: str, refusals: Sequence[Refusal], position: Position | None) -> None:
        self.refusals, self.position = tuple(refusals), position
        reasons = "; ".join(map(str, refusals))
        super().__init__(f"The rows made for `{table}` do not pass, and nothing was committed. {reasons}.")


def is_audited(job: Job) -> bool:
    return bool(job.pipeline_spec.audits)


def audit(
    job: Job, batch: StagedBatch, after: DataFrame, partitions: Collection[str] | None, position: Position | None
) -> None:
    """Raises AuditRefused, once the rows of `batch` are kept. `after`, `partitions`: of AuditedRows."""
    spec = job.pipeline_spec
    judge: Auditor = Registry[Auditor]("auditor", {"audits": spec.auditor}).get("audits")
    with job.phase("audit"):
        tables = {each.name: read_at(job.spark, each.uri).drop(*META_COLUMNS) for each in spec.inputs}
        audited = AuditedRows(after, job.table.record_key, job.table.partition_column, partitions, tables)
        refusals = judge(spec.audits, audited, now=job.started_at + job.clock_ahead)
        if not refusals:
            remove_rows(job.refused_uri)  # those of before are of no use any more
            return
        keep_rows(batch, job.refused_uri)
        raise AuditRefused(job.table.name, refusals, position)


def refused_report(job: Job, refused: AuditRefused) -> JobReport:
    facts: dict[str, Any] = {
        "audits": [asdict(each) for each in refused.refusals],
        "kept_at": job.refused_uri,
        "position": (refused.position or {}).get(INPUTS, {}),
    }
    return JobReport(job.spec.run_id, REFUSED, output={"refused": facts}, error=str(refused))
