"""Files that are written anew by columns are like Hudi's own to whoever reads or writes the table after it."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.file_groups import direct_write
from ingestion.spark.file_groups.rewriting import FileRewrite
from ingestion.spark.tables import hudi
from tests.polling import scaled
from tests.spark.order_shop import Orders


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Orders:
    shop = Orders(tmp_path, index="record_index")
    shop.fill(40, days=10)
    assert shop.run(spark, "bootstrap", "b").error is None
    return shop


def test_two_files_are_written_at_the_same_time(
    spark: SparkSession, shop: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four, one after the other, the first would wait in vain."""
    both, rewrite_file = Barrier(2), direct_write.rewrite_file

    def meet(*given: Any) -> int:
        both.wait(scaled(60))
        return rewrite_file(*given)

    monkeypatch.setattr(direct_write, "rewrite_file", meet)
    for number in range(4):
        shop.change(number, -1.0, "2026-11-17 07:00:00")
    report = shop.run(spark, "incremental", "i1")
    assert (report.error, report.counts.applied) == (None, 4)
    assert shop.rows(spark) == shop.source_rows()


def test_where_the_disk_is_full_in_the_middle_of_a_file_nothing_is_committed(
    spark: SparkSession, shop: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of the file is left, which nobody reads, and the next job writes the rows."""
    rewrite_file = direct_write.rewrite_file

    def fail(filesystem: Any, rewrite: FileRewrite) -> int:
        rows = rewrite_file(filesystem, rewrite)
        if not rewrite.partition.endswith("2026-11-09"):
            return rows
        os.truncate(rewrite.new, os.path.getsize(rewrite.new) // 2)
        raise OSError(errno.ENOSPC, "No space left on device")

    before, commits = shop.rows(spark), len(list(shop.timeline.newest_first()))
    shop.sql("update orders set amount = -1, updated_at = '2026-11-17 07:00:00' where day >= '2026-11-07'")
    with monkeypatch.context() as full:
        full.setattr(direct_write, "rewrite_file", fail)
        assert "No space left on device" in str(shop.run(spark, "incremental", "i1").error)
    assert (shop.rows(spark), len(list(shop.timeline.newest_first()))) == (before, commits)
    assert shop.run(spark, "incremental", "i2").counts.applied == 16
    assert shop.rows(spark) == shop.source_rows()


def test_another_writer_meets_the_rows_of_a_rewritten_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the Bloom filter and the least and greatest key in its footer, which have the keys that were added too."""
    written: list[Any] = []
    rewrite_file = direct_write.rewrite_file
    monkeypatch.setattr(direct_write, "rewrite_file", lambda *given: written.append(given[1]) or rewrite_file(*given))
    shop = Orders(tmp_path, index="memory")
    shop.table = replace(shop.table, record_key=("id",))
    shop.fill(12, days=2)
    assert shop.run(spark, "bootstrap", "b").error is None
    shop.change(1, -1.0, "2026-11-17 07:00:00")
    day = next(row[1] for row in shop.source_rows() if row[0] == 1)
    shop.add((900, day, 5.0, "2026-11-17 07:00:00"), (-7, day, 6.0, "2026-11-17 07:00:00"))
    report = shop.run(spark, "incremental", "i")
    assert (report.error, report.written.updates, report.written.inserts) == (None, 1, 2)
    assert [len(each.added) for each in written] == [2]

    stored = spark.read.format("hudi").load(shop.table.uri).drop(*hudi.META_COLUMNS)
    options = {**hudi.table_options(shop.table, parallelism=2), "hoodie.index.type": "BLOOM"}
    options |= {"hoodie.bloom.index.use.metadata": "false", "hoodie.datasource.write.operation": "upsert"}
    changed = stored.withColumn("amount", stored["amount"] + 100).localCheckpoint()
    changed.write.format("hudi").options(**options).mode("append").save(shop.table.uri)
    rows = spark.read.format("hudi").load(shop.table.uri).collect()
    assert len(rows) == len({row["id"] for row in rows}) == 14
    assert {row["id"]: row["amount"] for row in rows if row["id"] in (1, 900, -7)} == {1: 99.0, 900: 105.0, -7: 106.0}
