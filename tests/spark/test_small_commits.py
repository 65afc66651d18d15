"""Commits that need no Spark job: one that only moves the checkpoint, and a delete of a few keys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.spec import DeleteSpec
from ingestion.spark.indexes import INDEXES
from ingestion.spark.tables import hudi
from tests.spark.order_shop import Orders
from tests.spark.test_small_batches import counting

DAY = "2026-11-01"


@pytest.mark.parametrize("index", list(INDEXES))
def test_a_checkpoint_is_stamped_again_without_a_spark_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    monkeypatch.setattr(hudi, "MIN_COMMITS_KEPT", 4)
    shop = Orders(tmp_path, index=index)
    shop.fill(10, days=1)
    assert shop.run(spark, "bootstrap", "b").error is None
    for number in range(2):
        shop.run(spark, "delete", f"d{number}", delete=DeleteSpec(keys=((str(number), DAY),)))
    before = shop.timeline.commits()
    with counting(spark) as counted:
        assert shop.run(spark, "incremental", "i").error is None
    stamped = shop.timeline.commits()[-1]
    assert (counted.jobs, len(shop.timeline.commits()) - len(before)) == (0, 1)
    assert (stamped.partitions, stamped.checkpoint) == ({}, before[0].checkpoint)
    assert len(shop.rows(spark)) == 8
    shop.change(5, -1.0, "2026-11-17 08:00:00")
    assert shop.run(spark, "incremental", "j").written.updates == 1


@pytest.mark.parametrize("index", list(INDEXES))
@pytest.mark.parametrize("key", [("id",), ("id", "day")])
def test_a_few_keys_are_deleted_without_a_spark_job(
    spark: SparkSession, tmp_path: Path, index: str, key: tuple[str, ...]
) -> None:
    """Keys that are not there, and those in other partitions than the ones named, are passed over. Where neither the key nor an index
    says where a row lies, Spark looks for it."""
    shop = Orders(tmp_path, index=index)
    shop.table = replace(shop.table, record_key=key)
    shop.fill(12, days=3)
    assert shop.run(spark, "bootstrap", "b").error is None
    keys = tuple((str(number), f"2026-11-{number % 3 + 1:02}")[: len(key)] for number in (0, 1, 3, 99))
    with counting(spark) as counted:
        report = shop.run(spark, "delete", "d", delete=DeleteSpec(keys=keys), partitions=(DAY,))
    assert (report.error, report.written.deletes, report.counts.applied) == (None, 2, 2)
    assert report.partitions == {DAY: 2}
    assert counted.jobs == 0 or (index == "simple" and key == ("id",))
    assert [row[0] for row in shop.rows(spark, "id")] == sorted((1, 2, *range(4, 12)), key=lambda id_: str((id_,)))
    assert shop.run(spark, "delete", "e", delete=DeleteSpec(keys=keys[-1:])).status == "nothing_to_do"
    assert shop.run(spark, "backfill", "f", partitions=(DAY,)).written.inserts == 2
    assert shop.rows(spark) == shop.source_rows()


@pytest.mark.parametrize("index", ["record_index", "memory"])
def test_a_key_of_whole_decimals_needs_no_spark_job(spark: SparkSession, tmp_path: Path, index: str) -> None:
    """Which unsigned integers of 64 bits become. Spark's way and the direct one write the same texts of keys."""
    shop = Orders(tmp_path, index=index)
    shop.table = replace(shop.table, record_key=("id",))
    shop.sql("drop table orders")
    shop.sql("create table orders(id numeric(20, 0), day text, amount real, updated_at timestamp)")
    shop.add(*((number * 10**18, DAY, 1.0, "2026-11-16 08:00:00") for number in range(9)))
    assert shop.run(spark, "bootstrap", "b").error is None
    shop.change(7 * 10**18, -1.0, "2026-11-17 08:00:00")
    shop.add((5, DAY, 2.0, "2026-11-17 08:00:00"))
    with counting(spark) as counted:
        report = shop.run(spark, "incremental", "i")
    assert (report.error, report.written.inserts, report.written.updates, counted.jobs) == (None, 1, 1, 0)
    assert len(shop.rows(spark)) == 10
