"""Every index decides between insert and update rightly: each key once, wherever it lived."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.spec import DeleteSpec
from ingestion.spark.indexes import INDEXES
from ingestion.spark.tables.hudi import read_table
from tests.spark.order_shop import Orders

LATER = "2026-11-16 09:00:00"


@pytest.fixture(params=list(INDEXES))
def indexed(request: pytest.FixtureRequest, tmp_path: Path) -> Orders:
    return Orders(tmp_path, index=request.param)


def test_updates_and_inserts_in_one_batch(spark: SparkSession, indexed: Orders) -> None:
    indexed.fill(40)
    indexed.run(spark, "bootstrap", "b")
    indexed.sql(f"update orders set amount = -1, updated_at = '{LATER}' where id % 2 = 0")
    indexed.add(*((number, f"2026-11-{number % 4 + 1:02}", 1.0, LATER) for number in range(100, 120)))
    report = indexed.run(spark, "incremental", "i")
    assert report.error is None
    assert (report.written.inserts, report.written.updates) == (20, 20)
    assert indexed.rows(spark) == indexed.source_rows()


def test_a_key_that_moves_to_another_partition_lives_there_alone(spark: SparkSession, indexed: Orders) -> None:
    indexed.table = replace(indexed.table, record_key=("id",))
    indexed.fill(10)
    indexed.run(spark, "bootstrap", "b")
    indexed.sql(f"update orders set day = '2026-11-09', updated_at = '{LATER}' where id = 4")
    report = indexed.run(spark, "incremental", "i")
    assert report.counts.applied == 1
    assert indexed.rows(spark) == indexed.source_rows()


def test_a_key_of_every_type_is_found_again(spark: SparkSession, indexed: Orders) -> None:
    indexed.sql("drop table orders")
    indexed.sql("create table orders(id timestamp, day text, due date, amount real, updated_at timestamp)")
    indexed.table = replace(indexed.table, record_key=("id", "day", "due"))
    indexed.add(
        *((f"2026-11-16 08:00:0{n}.000{n}", "2026-11-01", f"2026-12-0{n}", 1.0, "2026-11-16") for n in range(1, 6))
    )
    indexed.run(spark, "bootstrap", "b")
    indexed.sql(f"update orders set amount = 2, updated_at = '{LATER}'")
    report = indexed.run(spark, "incremental", "i")
    assert report.error is None
    assert (report.written.inserts, report.written.updates) == (0, 5)
    assert [row[0] for row in indexed.rows(spark, "amount")] == [2.0] * 5


def test_deletes(spark: SparkSession, indexed: Orders) -> None:
    indexed.fill(10, days=1)
    indexed.run(spark, "bootstrap", "b")
    assert indexed.run(spark, "delete", "d", delete=DeleteSpec(keys=(("3", "2026-11-01"),))).written.deletes == 1
    assert indexed.run(spark, "backfill", "f", partitions=("2026-11-01",)).counts.applied == 1
    assert indexed.rows(spark) == indexed.source_rows()


def test_a_loaded_table_takes_another_index_with_its_next_commit_and_goes_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The commit builds the record index, or removes the metadata table: a stale one would be read."""
    shop = Orders(tmp_path, index="simple")
    shop.fill(12)
    shop.run(spark, "bootstrap", "b")
    for index, at in (("record_index", "09:00"), ("simple", "10:00"), ("record_index", "11:00")):
        shop.table = replace(shop.table, index=index)
        shop.sql(
            f"update orders set amount = amount - 1, updated_at = '2026-11-16 {at}:00' where id in (0, 2, 4, 6, 8, 10)"
        )
        shop.add((int(at[:2]) + 100, "2026-11-01", 1.0, f"2026-11-16 {at}:00"))
        report = shop.run(spark, "incremental", index + at[:2])
        assert report.error is None
        assert (report.written.inserts, report.written.updates) == (1, 6)
        assert shop.rows(spark) == shop.source_rows()
        assert sorted(map(tuple, read_table(spark, shop.table).select("id", "day", "amount").collect()), key=str) == (
            shop.source_rows()
        )
        assert (tmp_path / "lake/orders/.hoodie/metadata/record_index").exists() == (index == "record_index")
        assert (tmp_path / "lake/orders/.hoodie/metadata").exists() == (index == "record_index")
    removed = shop.run(spark, "delete", "d", delete=DeleteSpec(keys=(("3", "2026-11-01"),)))
    assert (removed.error, removed.written.deletes) == (None, 1)
