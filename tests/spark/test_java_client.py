"""The files of a small commit that are left to Hudi are merged side by side, and the keys that the record index wants are read by column."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.compiled_java import define_beside
from ingestion.spark.file_groups import direct_write
from ingestion.spark.file_groups.java_files import files_configuration
from ingestion.spark.session import jvm
from ingestion.spark.tables import hudi
from tests.spark.order_shop import Orders

_MERGES = r"""
package org.apache.hudi.io;

import java.util.Iterator;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.apache.hudi.common.engine.TaskContextSupplier;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.exception.HoodieException;
import org.apache.hudi.table.HoodieTable;

public class MeetingMerge extends FileGroupReaderBasedMergeHandle {
    private static final CyclicBarrier BOTH = new CyclicBarrier(2);

    public MeetingMerge(HoodieWriteConfig config, String instant, HoodieTable table, Iterator records, String partition,
            String fileId, TaskContextSupplier task, Option keys) {
        super(config, instant, table, records, partition, fileId, task, keys);
    }

    public void doMerge() {
        try {
            BOTH.await(60, TimeUnit.SECONDS);
        } catch (Exception e) {
            throw new HoodieException("No other file is merged at the same time", e);
        }
        if (partitionPath.endsWith("2026-11-09")) {
            throw new HoodieException("The disk is full");
        }
        super.doMerge();
    }
}
"""


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Orders:
    """Without a change log, for which Hudi takes no merge but its own."""
    shop = Orders(tmp_path, index="record_index")
    shop.table = replace(shop.table, change_log=False)
    shop.fill(40, days=10)
    assert shop.run(spark, "bootstrap", "b").error is None
    return shop


@pytest.fixture
def meeting_merges(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """All files are Hudi's; each merge of one waits for another, and that of 2026-11-09 fails."""
    monkeypatch.setattr(direct_write, "footer_to_rewrite", lambda *_: None)
    define_beside(jvm(spark), "org.apache.hudi.io.HoodieMergeHandle", _MERGES, marker="tests.merges")
    table_options = hudi.table_options
    merges = {
        "hoodie.write.merge.handle.class": "org.apache.hudi.io.MeetingMerge",
        "hoodie.write.merge.handle.fallback": "false",
    }
    monkeypatch.setattr(hudi, "table_options", lambda *table, **given: table_options(*table, **given) | merges)


def test_two_files_are_merged_at_the_same_time(spark: SparkSession, shop: Orders, meeting_merges: None) -> None:
    """Of four, one after the other, the first would wait in vain."""
    for number in range(4):
        shop.change(number, -1.0, "2026-11-17 07:00:00")
    report = shop.run(spark, "incremental", "i1")
    assert (report.error, report.counts.applied) == (None, 4)
    assert shop.rows(spark) == shop.source_rows()


def test_where_one_of_the_files_is_not_merged_nothing_is_committed(
    spark: SparkSession, shop: Orders, meeting_merges: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, commits = shop.rows(spark), len(list(shop.timeline.newest_first()))
    shop.sql("update orders set amount = -1, updated_at = '2026-11-17 07:00:00' where day >= '2026-11-07'")
    assert "The disk is full" in str(shop.run(spark, "incremental", "i1").error)
    assert (shop.rows(spark), len(list(shop.timeline.newest_first()))) == (before, commits)
    monkeypatch.undo()
    assert shop.run(spark, "incremental", "i2").counts.applied == 16
    assert shop.rows(spark) == shop.source_rows()


def test_keys_are_those_that_hudi_reads(spark: SparkSession, tmp_path: Path) -> None:
    """Of files as Spark and as the client write them: with keys of any text, in several pages and groups of rows."""
    shop = Orders(tmp_path, index="record_index")
    shop.table = replace(shop.table, record_key=("id",))
    shop.sql("drop table orders")
    shop.sql("create table orders(id text, day text, amount real, updated_at timestamp)")
    awkward = (" ", "Ünïcode ✓", "a:b,c", "x" * 3000, "null", "__null__", "\x00", "\N{GRINNING FACE}")
    keys = (*awkward, *(f"key {number % 7} {number}" for number in range(30_000)))
    shop.add(*((key, "2026-11-01", 1.0, "2026-11-16 08:00:00") for key in keys))
    assert shop.run(spark, "bootstrap", "b").error is None
    shop.sql("update orders set amount = 2, updated_at = '2026-11-17 08:00:00' where id = ? ", [("key 0 7",)])
    assert shop.run(spark, "incremental", "i1").counts.applied == 1
    files = sorted((tmp_path / "lake" / "orders" / "day=2026-11-01").glob("*.parquet"))
    assert len({"_0-0-0_" in file.name for file in files}) == 2, files
    read = [(_keys(spark, file, ours=True), _keys(spark, file, ours=False)) for file in files]
    assert all(ours == hudis for ours, hudis in read)
    assert set().union(*(ours for ours, _ in read)) == set(keys)


def _keys(spark: SparkSession, file: Path, *, ours: bool) -> set[str]:
    java: Any = jvm(spark).org.apache.hudi
    path = java.storage.StoragePath(str(file))
    configuration = files_configuration(spark)
    storage = java.storage.HoodieStorageUtils.getStorage(path, configuration)
    if not ours:
        return set(java.common.util.ParquetUtils().readRowKeys(storage, path))
    files = java.io.storage.HoodieIOFactory.getIOFactory(storage)
    read = files.getFileFormatUtils(java.common.model.HoodieFileFormat.PARQUET)
    assert read.getClass().getSimpleName() == "Keys"
    return set(read.readRowKeys(storage, path))
