"""One of our own Spark jobs and the gate: nothing is written while an input is blocked; then the job runs, and what it wrote is tested."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession

from incidents.lifecycle.intake import process_flips
from ingestion.models import Commit, JobRun, JobState, TouchedPartition
from ingestion.ports import input_gate
from ingestion.runs import job_runs, run_worker
from lakehub.catalog.models import DataCenter, DatasetCopy
from quality.models import Lane
from quality.planning.touched_partitions import claim_touched_partitions
from tests import factories as given
from tests.factories import MINUTE, NOW, day
from tests.spark.order_shop import Orders
from tests.spark.shared_session import SharedSession
from tests.web.incidents.failing_dataset import BAD_DAY, FailingDataset

pytestmark = pytest.mark.django_db


def made_from(upstream: FailingDataset, orders: Orders) -> DatasetCopy:
    """`orders` in dc1, read from the shop, and made from the upstream's dataset."""
    DataCenter.objects.filter(name="dc1").update(lake_uri=(orders.folder / "lake").as_uri())
    dataset = given.dataset(
        "orders", record_key=["id", "day"], reference_key="updated_at", partition_column="day", partition_tz="UTC"
    )
    (url,) = orders.secrets.values()
    given.feed(dataset, connection=given.connection("shop", url))
    given.edge(upstream.dataset, dataset)
    return given.copy_of(dataset)


def go(spark: SparkSession, folder: str, now: datetime) -> JobRun | None:
    worker = run_worker.Worker(
        "host:1:a", SharedSession(spark), folder, lambda: now, timedelta, lambda: 0.0, input_gate()
    )
    return run_worker.run_next(worker)


def test_a_spark_job_waits_for_its_input_and_what_it_then_wrote_is_tested(spark: SparkSession, orders: Orders) -> None:
    orders.fill(30)
    upstream = FailingDataset(copies=("dc1",))
    upstream.opened(BAD_DAY, "dc1")
    copy = made_from(upstream, orders)
    known = given.unit(given.quality_test(copy.dataset), copy, day("2026-11-02", ZoneInfo("UTC")))
    run = job_runs.request_run(copy, "bootstrap", asked_by="schedule", now=NOW)
    staging = (orders.folder / "staging").as_uri()

    assert go(spark, staging, NOW) == run
    run.refresh_from_db()
    assert (run.state, run.error) == (JobState.WAITING, "waits for flights@dc1: fail: sustained")
    assert not (orders.folder / "lake").exists()

    upstream.passes(upstream.unit(BAD_DAY, "dc1"), at=NOW + MINUTE)
    process_flips(now=NOW + MINUTE)
    assert go(spark, staging, NOW + MINUTE) == run
    run.refresh_from_db()
    assert (run.state, run.report["counts"]["applied"]) == (JobState.SUCCEEDED, 30)
    assert orders.rows(spark) == orders.source_rows()
    assert (Commit.objects.get().run, TouchedPartition.objects.count()) == (run, 3)

    assert claim_touched_partitions(now=NOW + MINUTE) == 1
    known.refresh_from_db()
    assert (known.touched_at, known.lane) == (NOW + MINUTE, Lane.LATE)
