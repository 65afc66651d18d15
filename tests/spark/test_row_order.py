"""The files of a first load: the rows of a partition in one of them, by key, and read once for that."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.spark.order_shop import Orders
from tests.spark.test_small_batches import counting

MANY, FEW = 20, 3


@pytest.mark.parametrize("index", ["simple", "record_index"])
def test_many_partitions_are_one_file_each_in_the_order_of_their_keys(
    spark: SparkSession, tmp_path: Path, index: str
) -> None:
    shop = Orders(tmp_path, index=index)
    shop.fill(2000, days=MANY)
    assert shop.run(spark, "bootstrap", "b").error is None
    files = list((tmp_path / "lake" / "orders").glob("day=*/*.parquet"))
    assert len(files) == len({file.parent for file in files}) == MANY
    for file in files:
        keys = pq.read_table(file, columns=["_hoodie_record_key"], partitioning=None)[0].to_pylist()
        assert keys == sorted(keys)
        assert len(keys) == 100
    assert shop.rows(spark) == shop.source_rows()
    shop.change(7, -1.0, "2026-11-17 07:00:00")
    assert shop.run(spark, "incremental", "i").written.updates == 1


def test_rows_are_read_once_more_where_all_are_sorted(spark: SparkSession, tmp_path: Path) -> None:
    """A job of Spark's that learns where to cut."""
    jobs = {}
    for days in (FEW, MANY):
        shop = Orders(tmp_path / str(days))
        shop.fill(200, days=days)
        with counting(spark) as counted:
            assert shop.run(spark, "bootstrap", "b").error is None
        jobs[days] = counted.jobs
        assert shop.rows(spark) == shop.source_rows()
    assert jobs[MANY] == jobs[FEW] - 1, jobs


def test_rows_with_a_key_twice_are_gathered_too(spark: SparkSession, tmp_path: Path) -> None:
    shop = Orders(tmp_path)
    shop.fill(200, days=MANY)
    shop.add((7, "2026-11-08", -7.0, "2026-11-17 08:00:00"))
    report = shop.run(spark, "bootstrap", "b")
    assert (report.error, report.counts.applied, report.counts.superseded) == (None, 200, 1)
    files = list((tmp_path / "lake" / "orders").glob("day=*/*.parquet"))
    assert len(files) == len({file.parent for file in files}) == MANY
