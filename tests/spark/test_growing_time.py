"""Commits go on, and grow, after a clock that was hours ahead while one was made is right again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from threading import Thread

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.report import JobReport
from ingestion.spark.tables.growing_time import CLOCKS_DIFFER_BY
from ingestion.spark.tables.timeline import Timeline, instant_to_datetime
from tests.polling import scaled
from tests.spark.order_shop import Orders

AHEAD = timedelta(hours=5)
WITHIN_S = 60


def test_a_table_that_was_written_hours_ahead_is_written_on_and_its_times_grow(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_ahead(spark, orders, monkeypatch)
    for number in range(3):
        orders.change(number, 100.0 + number, f"2026-11-16 09:00:0{number}")
        report = _run_in_time(spark, orders, "incremental", f"later-{number}")
        assert (report.status, report.error) == ("succeeded", None)
    times = [(commit.instant, commit.completed) for commit in orders.timeline.commits()]
    assert len(times) == 4
    assert all(requested < completed for requested, completed in times)
    assert all(earlier[1] < later[0] for earlier, later in pairwise(times))
    assert instant_to_datetime(times[-1][1]) - datetime.now(UTC) < AHEAD + timedelta(seconds=1)
    assert orders.rows(spark) == orders.source_rows()


def test_other_tables_of_the_same_session_are_written_by_the_clock(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_ahead(spark, orders, monkeypatch)
    other = Orders(orders.folder / "other")
    other.fill(20)
    _run_in_time(spark, other, "bootstrap", "other")
    (commit,) = other.timeline.commits()
    assert abs(commit.completed_at - datetime.now(UTC)) < CLOCKS_DIFFER_BY + timedelta(seconds=scaled(WITHIN_S))


def _write_ahead(spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first commit, as by a clock that is ahead."""
    orders.fill(20)
    ahead = f"{datetime.now(UTC) + AHEAD:%Y%m%d%H%M%S}000"
    with monkeypatch.context() as patched:
        patched.setattr(Timeline, "latest_time", lambda timeline: ahead)
        _run_in_time(spark, orders, "bootstrap", "ahead")
    (commit,) = orders.timeline.commits()
    assert ahead < commit.instant < commit.completed == orders.timeline.latest_time()


def test_the_latest_time_is_that_of_services_and_of_the_metadata_table_too(orders: Orders) -> None:
    assert orders.timeline.latest_time() == ""
    timeline = orders.folder / "lake" / "orders" / ".hoodie" / "timeline"
    metadata = timeline.parent / "metadata" / ".hoodie" / "timeline"
    for folder, name in (
        (timeline, "20261116080000000_20261116080001000.commit"),
        (timeline, "20261116080002000.clean.requested"),
        (metadata, "20261116080000000010_20261116080003000.deltacommit"),
        (metadata, "00000000000000010_20261116080000000.deltacommit"),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    assert orders.timeline.latest_time() == "20261116080003000"


def _run_in_time(spark: SparkSession, orders: Orders, kind: str, run: str) -> JobReport:
    """Hudi would wait for hours, and nobody could end it."""
    reports: list[JobReport] = []
    job = Thread(target=lambda: reports.append(orders.run(spark, kind, run)), daemon=True)
    job.start()
    job.join(scaled(WITHIN_S))
    assert reports, f"{run} has not ended"
    return reports[0]
