"""A real load in several commits that a person pauses: it ends after the commit that it is in, and goes on after it when it is resumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from ingestion.lake.findings import JOB_FAILING
from ingestion.models import Commit, Finding, JobRun, JobState, SourcePlace
from ingestion.runs import feed_schedule, job_runs, run_worker
from ingestion.runs.copy_lag import is_loaded
from ingestion.runs.source_use import paused_runs
from ingestion.spark.contract.guidance import Guidance, NoGuidance
from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import JobSpec
from ingestion.spark.contract.write_lease import WriteLease
from ingestion.spark.execute import execute
from ingestion.spark.tables.timeline import Timeline
from lakehub.catalog.datasets import pausing
from lakehub.catalog.models import Connection, Dataset, DatasetCopy
from lakehub.kernel.errors import Refused
from tests import factories
from tests.factories import NOW
from tests.spark.order_shop import Orders, read
from tests.web.ingestion.conftest import open_gate

pytestmark = pytest.mark.django_db(transaction=True)
ROWS, ROWS_A_COMMIT = 10, 4
COLUMNS = [{"name": name, "type": "string", "nullable": True} for name in ("id", "day", "amount", "updated_at")]


@dataclass
class WatchedJobs:
    """Jobs on the session that all tests share. `before_question` is called before a job is told whether it is paused;
    `commit_rows`: of how many rows a commit is, fewer than a feed may ask for."""

    spark: SparkSession
    before_question: Callable[[], None] = lambda: None
    commit_rows: int | None = None

    def run(
        self,
        spec: JobSpec,
        secrets: Mapping[str, str],
        lease: WriteLease | None = None,
        guidance: Guidance | None = None,
    ) -> JobReport:
        if self.commit_rows is not None and spec.source is not None:
            spec = replace(spec, source=replace(spec.source, commit_rows=self.commit_rows))
        watched = WatchedGuidance(guidance or NoGuidance(), self)
        return execute(spec, spark=self.spark, secrets=secrets, lease=lease, guidance=watched)

    def progress(self, run_id: str) -> None:
        return None

    def close(self) -> None:
        """It is not ours to close."""


@dataclass
class WatchedGuidance:
    guidance: Guidance
    jobs: WatchedJobs

    def is_paused(self) -> bool:
        self.jobs.before_question()
        return self.guidance.is_paused()

    def may_read_on(self, rows: int) -> bool:
        return self.guidance.may_read_on(rows)

    def index_requests_per_s(self) -> float | None:
        return self.guidance.index_requests_per_s()


@pytest.fixture
def dataset(orders: Orders) -> Dataset:
    orders.fill(ROWS)
    factories.data_center("dc1", (orders.folder / "lake").as_uri())
    made = factories.dataset(
        "orders", columns=COLUMNS, record_key=["id", "day"], reference_key="updated_at", partition_column="day"
    )
    (url,) = orders.secrets.values()
    connection = factories.connection("shop", url)
    factories.feed(made, connection=connection)
    return made


def test_it_stops_after_the_commit_that_it_is_in_and_goes_on_after_it(
    spark: SparkSession, orders: Orders, dataset: Dataset
) -> None:
    jobs, copy = WatchedJobs(spark, commit_rows=ROWS_A_COMMIT), factories.copy_of(dataset)
    staging = (orders.folder / "staging").as_uri()
    worker = run_worker.Worker("host:1:a", jobs, staging, lambda: NOW, timedelta, lambda: 0.0, open_gate)
    (run,) = feed_schedule.request_due_runs(now=NOW)

    def pause() -> None:
        pausing.pause_ingestion(Dataset.objects.get(), why="the database moves", actor="ana", now=NOW)
        jobs.before_question = lambda: None

    jobs.before_question = pause
    run_worker.run_next(worker)
    run.refresh_from_db()
    assert Commit.objects.get().is_part_of_load
    assert (run.state, run.report["status"], run.report["counts"]["read"]) == (JobState.PAUSED, "paused", 4)
    position = Timeline(copy.uri).checkpoint()
    assert position is not None
    assert position.position["unfinished_snapshot"]["rows"] == ROWS_A_COMMIT
    assert read(spark, copy.uri).count() == ROWS_A_COMMIT

    # Nothing begins, nothing has failed, and the copy counts as what it is: not loaded.
    orders.add((3, "2026-11-01", 33.0, "2026-11-16 09:00:00"))
    paused_runs.apply_pauses(now=NOW)
    assert (feed_schedule.request_due_runs(now=NOW + factories.DAY), run_worker.run_next(worker)) == ([], None)
    assert not Finding.objects.filter(kind=JOB_FAILING).exists()
    assert (is_loaded(copy), Commit.objects.count()) == (False, 1)
    with pytest.raises(Refused, match="paused by ana"):
        job_runs.request_run(DatasetCopy.objects.get(), "bootstrap", asked_by="bo", now=NOW)

    pausing.resume_ingestion(Dataset.objects.get(), actor="bo", now=NOW)
    paused_runs.apply_pauses(now=NOW)
    assert run_worker.run_next(worker) == run
    run.refresh_from_db()
    assert (run.state, JobRun.objects.count(), is_loaded(copy)) == (JobState.SUCCEEDED, 1, True)
    assert Commit.objects.count() == 3
    assert sorted(commit.read for commit in Commit.objects.all()) == [2, 4, 4], "no row of the first is read again"
    assert run.report["counts"]["read"] == ROWS


def test_a_load_reads_no_faster_than_its_connection_allows(
    spark: SparkSession, orders: Orders, dataset: Dataset
) -> None:
    """Ten rows at four a second: with the second that may be caught up it takes a second and a half at least."""
    Connection.objects.update(rows_per_s=4, max_connections=1)
    staging = (orders.folder / "staging").as_uri()
    worker = run_worker.Worker("host:1:a", WatchedJobs(spark), staging, lambda: NOW, timedelta, lambda: 0.0, open_gate)
    (run,) = feed_schedule.request_due_runs(now=NOW)
    run_worker.run_next(worker)
    run.refresh_from_db()
    assert (run.state, run.report["counts"]["read"], SourcePlace.objects.count()) == (JobState.SUCCEEDED, ROWS, 0)
    assert run.report["phases"]["read"] >= ROWS / 4 - 1 - 0.05
