"""A source that is followed, its launcher, and what a process that follows it leaves in the database."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from django.apps import apps
from django.test.utils import CaptureQueriesContext

from ingestion.following.follower import Follower
from ingestion.models import JobKind, JobRun
from ingestion.ports import InputDecision
from ingestion.runs import run_worker
from ingestion.runs.run_worker import Worker
from ingestion.sources import SourceConfig
from ingestion.sources.sql.source import SqlSource
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import FAILED, PUT_OFF, SUCCEEDED, JobReport, RowCounts
from ingestion.spark.contract.spec import JobSpec
from lakehub.catalog.models import DatasetCopy
from tests.factories import NOW
from tests.web.ingestion import hudi_timeline

SECOND = timedelta(seconds=1)
EVERY = 5 * SECOND
WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


@dataclass
class Shop:
    """A source of a few rows, and a launcher whose jobs commit what changed in it, without Spark."""

    copy: DatasetCopy
    database: Path
    now: datetime = NOW
    fails: str = ""
    is_put_off: bool = False
    times_out: bool = False
    """Of batches: they take longer than they may."""
    took_s: float = 1.0
    """Of jobs of the other lane."""
    specs: list[JobSpec] = field(default_factory=list)
    leave_more: tuple[int, ...] = ()
    """The batches, counted from 1, that do not read all that there is."""
    allowed: bool = True
    asked: int = 0

    def sql(self, *statements: str) -> None:
        with sqlite3.connect(self.database) as db:
            for statement in statements:
                db.execute(statement)

    def change(self) -> None:
        self.sql(f"UPDATE flights SET updated_at = '{self.now:%Y-%m-%d %H:%M:%S}' WHERE id = 1")

    def commit(self, run_id: str, applied: int = 1) -> None:
        """At the present state of the source."""
        source = SqlSource(SourceConfig(f"sqlite:///{self.database}", "flights", "updated_at", 120.0))
        reading = source.snapshot()
        list(reading.batches)
        instant = f"{self.now:%Y%m%d%H%M%S}{len(self.specs) % 500:03}"
        facts = hudi_timeline.told_by(run_id, read=applied, applied=applied, kind="incremental")
        touched = {"2026-11-16": (0, applied, 0)}
        hudi_timeline.commit(self.copy, instant, touched, run=facts, checkpoint=reading.position())

    def run(self, spec: JobSpec, secrets: object, lease: object = None, guidance: object = None) -> JobReport:
        self.specs.append(spec)
        is_batch = spec.one_commit
        if is_batch and self.times_out:
            error = f"DeadlinePassed: The job took longer than its deadline of {spec.deadline_s:g} s."
            return JobReport(run_id=spec.run_id, status=FAILED, error=error, timed_out=True)
        if self.fails:
            return JobReport(run_id=spec.run_id, status=FAILED, error=self.fails)
        if self.is_put_off:
            return JobReport(run_id=spec.run_id, status=PUT_OFF)
        self.commit(spec.run_id)
        counts = RowCounts(read=1, applied=1)
        phases, has_more = {"total": 0.5 if is_batch else self.took_s}, len(self.specs) in self.leave_more
        return JobReport(run_id=spec.run_id, status=SUCCEEDED, counts=counts, phases=phases, has_more=has_more)

    def progress(self, run_id: str) -> JobProgress | None:
        return None

    def close(self) -> None:
        """Nothing is kept."""

    def gate(self, inputs: object, **_: object) -> list[InputDecision]:
        self.asked += 1
        return [InputDecision(each, self.allowed, "fail", "late") for each in inputs]  # type: ignore[attr-defined]

    def worker(self, name: str = "host:1:a") -> Worker:
        return Worker(name, self, "file:///staging", lambda: self.now, timedelta, lambda: 0.0, self.gate)

    def run_next_job(self) -> JobRun | None:
        """Of the lane that has no follow runs."""
        return run_worker.run_next(self.worker("host:3:c"))

    def steps(self, process: Follower, looks: int = 1) -> None:
        """As many looks, an interval apart."""
        for _ in range(looks):
            self.now += EVERY
            process.step()


def the_run() -> JobRun:
    return JobRun.objects.select_related("copy__dataset__feed").get(kind=JobKind.FOLLOW)


def rows_of_all_tables() -> dict[str, int]:
    return {model._meta.label: model._default_manager.count() for model in apps.get_models() if model._meta.managed}


def written(queries: CaptureQueriesContext) -> list[str]:
    return [query["sql"] for query in queries.captured_queries if query["sql"].startswith(WRITES)]
