"""Another partition by a rebuild, with real jobs: the present table is fed meanwhile, a job dies within its commit, then the switch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.models import JobKind, JobRun, JobState
from ingestion.runs import feed_schedule, job_runs, rebuilds, run_worker
from ingestion.spark.contract.progress import JobProgress
from ingestion.spark.contract.report import FAILED, JobReport
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.contract.write_lease import WriteLease
from ingestion.spark.execute import execute
from lakehub.catalog.models import Dataset
from lakehub.catalog.onboarding.rebuild import left_tables, open_rebuild
from lakehub.catalog.onboarding.redefine import change_dataset
from tests import factories
from tests.factories import HOUR, NOW
from tests.following import follow_once
from tests.polling import scaled
from tests.spark.job_processes import PROJECT, WITHIN_S
from tests.spark.order_shop import Orders, read
from tests.web.ingestion.conftest import open_gate

pytestmark = pytest.mark.django_db(transaction=True)
BY_MONTH = {"partition_column": "month", "grain": "month"}


@dataclass
class MortalJobs:
    """Jobs on the session that all tests share; the first of each kind in `dies` is a process that is killed within its commit."""

    spark: SparkSession
    folder: Path
    dies: set[tuple[str, str]] = field(default_factory=set)
    """(kind, last part of the table's URI)"""

    def run(
        self, spec: JobSpec, secrets: Mapping[str, str], lease: WriteLease | None = None, guidance: object = None
    ) -> JobReport:
        mark = spec.kind, spec.table.uri.rpartition("/")[2]
        if mark not in self.dies:
            return execute(spec, spark=self.spark, secrets=secrets, lease=lease)
        self.dies.remove(mark)
        file = self.folder / f"{spec.run_id}.json"
        file.write_text(spec.to_json())
        environment = {**os.environ, **secrets, "LAKEHUB_FAILPOINT": "ingestion.inside_commit"}
        command = [sys.executable, "-m", "ingestion.spark", str(file), str(self.folder / "report.json")]
        died = subprocess.run(
            command, cwd=PROJECT, env=environment, capture_output=True, timeout=scaled(WITHIN_S), check=False
        )
        assert died.returncode == -signal.SIGKILL, died.stderr[-3000:]
        return JobReport(run_id=spec.run_id, status=FAILED, error="no report")

    def progress(self, run_id: str) -> JobProgress | None:
        return None

    def close(self) -> None:
        """It is not ours to close."""


@dataclass
class Shop:
    orders: Orders
    dataset: Dataset
    jobs: MortalJobs

    def work(self, now: datetime, *, switching: bool = True, following: bool = True) -> None:
        """What beat and a worker do, until nothing is due."""
        feed_schedule.request_due_runs(now=now)
        staging = (self.orders.folder / "staging").as_uri()
        worker = run_worker.Worker("host:1:a", self.jobs, staging, lambda: now, timedelta, lambda: 0.0, open_gate)
        while run_worker.run_next(worker) is not None:
            pass
        if following:
            follow_once(replace(worker, name="host:1:f"))
        if switching:
            rebuilds.switch_whole_rebuilds(holder="host:1:b", now=now)

    def rows(self) -> list[tuple[object, ...]]:
        """What a reader of the dataset finds now."""
        frame = read(self.jobs.spark, factories.copy_of(self.dataset).uri).select("id", "day", "amount")
        return sorted((tuple(row) for row in frame.collect()), key=str)

    def states(self) -> list[str]:
        rebuild = open_rebuild(self.dataset)
        return [built.state for built in rebuilds.built_copies(rebuild)] if rebuild else []


@pytest.fixture
def shop(spark: SparkSession, orders: Orders) -> Shop:
    """Loaded by day."""
    orders.fill(30)
    orders.add((100, "2026-10-31", 1.0, "2026-11-16 08:00:00"))
    orders.sql("alter table orders add column month text")
    orders.sql("update orders set month = substr(day, 1, 7)")
    factories.data_center("dc1", (orders.folder / "lake").as_uri())
    columns = [
        {"name": name, "type": "string", "nullable": True} for name in ("id", "day", "amount", "updated_at", "month")
    ]
    dataset = factories.dataset(
        "orders",
        columns=columns,
        record_key=["id", "day"],
        reference_key="updated_at",
        partition_column="day",
        partition_tz="UTC",
    )
    (url,) = orders.secrets.values()
    factories.feed(dataset, connection=factories.connection("shop", url), every=HOUR)
    made = Shop(orders, dataset, MortalJobs(spark, orders.folder))
    made.work(NOW)
    assert made.rows() == orders.source_rows()
    return made


def at(now: datetime) -> str:
    return f"{now:%Y-%m-%d %H:%M:%S}"


def test_a_rebuild_survives_a_killed_job_and_loses_no_change(spark: SparkSession, shop: Shop) -> None:
    orders, later = shop.orders, NOW + HOUR
    present = factories.copy_of(shop.dataset).uri
    change_dataset(Dataset.objects.get(), BY_MONTH, actor="ann", now=NOW)
    shop.jobs.dies = {(JobKind.BOOTSTRAP, "orders-2")}
    orders.change(3, 33.0, at(later))
    shop.work(later)
    # Killed within its commit: the present table has the change, and stays.
    assert (shop.states(), factories.copy_of(shop.dataset).uri) == (["loading"], present)
    assert shop.rows() == orders.source_rows()

    # It is tried again, and the present table reads what came meanwhile: the new one is behind until it has that too.
    loaded_at = JobRun.objects.get(kind=JobKind.BOOTSTRAP, state=JobState.QUEUED).due_at
    shop.work(loaded_at, switching=False)
    assert shop.states() == ["whole"]
    change_at = loaded_at + timedelta(minutes=1)
    orders.add((200, "2026-11-02", 2.0, at(change_at), "2026-11"))
    job_runs.request_run(factories.copy_of(shop.dataset), JobKind.INCREMENTAL, asked_by="ann", now=change_at)
    shop.work(change_at, following=False)
    assert (shop.states(), shop.rows()) == (["behind"], orders.source_rows())
    orders.change(4, 44.0, at(change_at + HOUR))
    shop.work(change_at + 2 * HOUR)
    shop.dataset.refresh_from_db()
    copy = factories.copy_of(shop.dataset)
    assert (shop.states(), shop.dataset.grain, copy.uri) == ([], "month", f"{present}-2")
    assert shop.rows() == orders.source_rows()
    frame = read(spark, copy.uri).groupBy("month").count().collect()
    assert {row[0]: row[1] for row in frame} == {"2026-10": 1, "2026-11": 31}

    (left,) = left_tables(shop.dataset)
    assert (left.uri, (orders.folder / "lake" / "orders").exists()) == (present, True)
    job_runs.request_run(left, JobKind.DROP, asked_by="ann", now=NOW)
    shop.work(change_at + 9 * HOUR)
    assert not (orders.folder / "lake" / "orders").exists()
    assert shop.rows() == orders.source_rows()
