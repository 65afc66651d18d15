"""What the source of an append-only dataset hands over as new is inserted without a look at the table, and no row is there twice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.report import JobReport
from ingestion.spark.indexes import INDEXES
from ingestion.spark.jobs import bootstrap
from ingestion.spark.loading import small_batches
from tests.fuzz_seed import REPEAT, SEED
from tests.spark.order_shop import Orders
from tests.spark.test_small_batches import counting

KEYS = (("id", "day"), ("id",))
WAYS = {"directly": small_batches.MAX_ROWS, "by Spark": 0}


@pytest.fixture(params=list(WAYS))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(small_batches, "MAX_ROWS", WAYS[request.param])
    return str(request.param)


@pytest.fixture
def log(tmp_path: Path, way: str) -> Orders:
    return append_only(tmp_path, "memory")


def append_only(folder: Path, index: str, key: tuple[str, ...] = ("id",)) -> Orders:
    shop = Orders(folder, index=index)
    shop.table = replace(shop.table, record_key=key, reference_key=None, append_only=True)
    shop.source = replace(shop.source, overlap_s=120.0)
    return shop


def loaded(spark: SparkSession, shop: Orders) -> Orders:
    """And followed to the end of what was there, from where on the source knows what is new."""
    shop.fill(12)
    assert run(spark, shop, "bootstrap", "b").counts.applied == 12
    shop.add((12, "2026-11-01", 12.0, "2026-11-16 08:10:00"))
    assert run(spark, shop, "incremental", "first").counts.applied == 1
    return shop


def run(spark: SparkSession, shop: Orders, kind: str, name: str, **fields: object) -> JobReport:
    report = shop.run(spark, kind, name, **fields)
    assert report.error is None
    assert report.is_accounted
    return report


@contextmanager
def without_base_files(shop: Orders) -> Iterator[None]:
    """The files of the table's rows are out of reach: whoever reads one fails."""
    files = sorted(shop.folder.glob("lake/orders/day=*/*.parquet"))
    assert files
    kept = {file: file.read_bytes() for file in files}
    for file in files:
        file.write_bytes(b"out of reach")
    yield
    for file, content in kept.items():
        file.write_bytes(content)


@pytest.mark.parametrize("index", list(INDEXES))
def test_new_rows_are_inserted_and_no_base_file_is_read(
    spark: SparkSession, tmp_path: Path, way: str, index: str
) -> None:
    log = loaded(spark, append_only(tmp_path, index))
    log.add(*((number, "2026-11-20", 1.0, "2026-11-16 09:00:00") for number in range(20, 40)))
    with without_base_files(log), counting(spark) as counted:
        report = run(spark, log, "incremental", "i")
    assert (report.counts.applied, report.written.inserts, report.written.updates) == (20, 20, 0)
    assert counted.jobs == 0 if way == "directly" else counted.jobs <= 12, counted.jobs
    assert log.rows(spark) == log.source_rows()


def test_a_row_that_comes_late_is_looked_up_and_the_others_are_not(spark: SparkSession, log: Orders) -> None:
    """Within the overlap it may be one that was handed over before."""
    loaded(spark, log)
    log.add((50, "2026-11-02", 1.0, "2026-11-16 08:09:30"), (51, "2026-11-02", 1.0, "2026-11-16 09:00:00"))
    assert run(spark, log, "incremental", "late").written.inserts == 2
    assert run(spark, log, "incremental", "again").status == "nothing_to_do"
    assert log.rows(spark) == log.source_rows()


def test_a_row_that_comes_again_is_told_from_a_new_one(spark: SparkSession, log: Orders) -> None:
    """Of a position that remembers nothing, as where more rows lie in the overlap than it holds."""
    loaded(spark, log)
    log.source = replace(log.source, overlap_s=0.0)
    log.add((20, "2026-11-02", 1.0, "2026-11-16 09:00:00"))
    run(spark, log, "incremental", "short")
    log.source = replace(log.source, overlap_s=3600.0)
    log.add((21, "2026-11-02", 1.0, "2026-11-16 09:30:00"))
    report = run(spark, log, "incremental", "widened")
    assert (report.counts.redelivered, report.counts.applied) == (13, 1)
    assert log.rows(spark) == log.source_rows()


def test_repeats_within_a_batch_are_told_apart(spark: SparkSession, log: Orders) -> None:
    loaded(spark, log)
    same = (30, "2026-11-02", 1.0, "2026-11-16 09:00:00")
    log.add(same, same, (31, "2026-11-02", 1.0, "2026-11-16 09:00:00"), (31, "2026-11-02", 2.0, "2026-11-16 09:00:01"))
    counts = run(spark, log, "incremental", "i").counts
    assert (counts.applied, counts.redelivered, counts.superseded) == (2, 1, 1)


def test_a_run_that_comes_again_after_its_commit_doubles_nothing(spark: SparkSession, log: Orders) -> None:
    loaded(spark, log)
    log.add((30, "2026-11-02", 1.0, "2026-11-16 09:00:00"))
    report = run(spark, log, "incremental", "i")
    log.add((31, "2026-11-02", 1.0, "2026-11-16 09:10:00"))
    assert run(spark, log, "incremental", "i").instant == report.instant
    run(spark, log, "incremental", "next")
    assert log.rows(spark) == log.source_rows()


def test_a_changed_row_does_not_stop_the_feed(spark: SparkSession, log: Orders) -> None:
    """The dataset says that there is none. What came last is there for certain; here the former row lies in another file, and stays."""
    loaded(spark, log)
    log.sql("update orders set amount = -1, day = '2026-11-25', updated_at = '2026-11-16 09:00:00' where id = 4")
    run(spark, log, "incremental", "changed")
    stored = log.rows(spark, "id", "amount")
    assert [row for row in stored if row[0] == 4] == [(4, -1.0), (4, 4.0)]
    report = run(spark, log, "backfill", "f", partitions=("2026-11-25", "2026-11-03"))
    assert report.counts.redelivered == report.counts.read == 5
    assert log.rows(spark, "id", "amount") == stored


def test_what_a_backfill_has_read_ahead_of_the_follower_is_there_once(spark: SparkSession, log: Orders) -> None:
    loaded(spark, log)
    log.add((30, "2026-11-02", 1.0, "2026-11-16 09:00:00"), (31, "2026-11-02", 1.0, "2026-11-16 10:00:00"))
    upto = "2026-11-16T11:00:00+00:00"
    assert run(spark, log, "backfill", "f", partitions=("2026-11-02",), upto=upto).counts.applied == 2
    # It began earlier, so the reading is whole and yet does not pass what the backfill has read.
    early = run(spark, log, "incremental", "early", upto="2026-11-16T09:30:00+00:00")
    assert (early.counts.applied, early.counts.redelivered) == (0, 1)
    log.add((32, "2026-11-02", 1.0, "2026-11-16 10:30:00"))
    later = run(spark, log, "incremental", "later", upto=upto)
    assert (later.counts.applied, later.counts.redelivered) == (1, 1)
    assert log.rows(spark) == log.source_rows()


def test_what_came_while_a_table_was_loaded_in_ranges_is_there_once(
    spark: SparkSession, log: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.fill(12)
    log.source = replace(log.source, commit_rows=5)

    def add_a_row(name: str) -> None:
        if name == "ingestion.between_commits" and log.source_rows()[-1][0] != 99:
            log.add((99, "2026-11-02", 1.0, "2026-11-16 09:00:00"))

    with monkeypatch.context() as loading:
        loading.setattr(bootstrap.failpoint, "reach", add_a_row)
        run(spark, log, "bootstrap", "b")
    assert len(log.rows(spark)) == 13
    log.add((100, "2026-11-02", 1.0, "2026-11-16 09:00:01"))
    report = run(spark, log, "incremental", "i")
    assert (report.counts.applied, report.counts.redelivered) == (1, 13)
    assert log.rows(spark) == log.source_rows()


@pytest.mark.parametrize("index", list(INDEXES))
def test_random_days_of_a_log_leave_each_row_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    """Rows that come in time, late and in crowds; jobs that read ahead, and looks that end at a limit."""
    randomly = random.Random(f"{SEED} {index}")
    shop = append_only(tmp_path, index, randomly.choice(KEYS))
    shop.source = replace(shop.source, commit_rows=4)
    at = datetime(2026, 11, 16, 8)
    shop.fill(6)
    run(spark, shop, "bootstrap", "b")
    number = 100
    for turn in range(6):
        at += timedelta(minutes=1)
        for _ in range(randomly.randrange(1, 7)):
            late = timedelta(seconds=randomly.choice([0, 0, 0, 30, 90]))
            shop.add((number, f"2026-11-{randomly.randrange(1, 4):02}", 1.0, f"{at - late:%Y-%m-%d %H:%M:%S}"))
            number += 1
        monkeypatch.setattr(small_batches, "MAX_ROWS", randomly.choice([0, 10_000]))
        upto = f"{at - timedelta(seconds=randomly.choice([0, 0, 45])):%Y-%m-%dT%H:%M:%S}+00:00"
        if randomly.random() < 0.25:
            run(spark, shop, "backfill", f"f{turn}", partitions=("2026-11-02",), upto=upto)
        else:
            run(spark, shop, "incremental", f"i{turn}", upto=upto)
    run(spark, shop, "incremental", "last", upto=f"{at:%Y-%m-%dT%H:%M:%S}+00:00")
    assert shop.rows(spark) == shop.source_rows(), REPEAT
