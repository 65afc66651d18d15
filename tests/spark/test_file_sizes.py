"""Base files do not grow with the table, so neither does what a changed row writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ingestion.spark.loading import small_batches
from ingestion.spark.tables import hudi
from tests.spark.order_shop import Orders
from tests.spark.test_small_batches import load

MIB = 2**20
NEW = 500_000
LARGE = 900_000
WAYS = {"directly": small_batches.MAX_ROWS, "by Spark": 0}


def written_bytes(shop: Orders) -> int:
    """By the newest commit, in data files."""
    commit = shop.timeline.completed()[-1]
    folder = shop.folder / "lake" / "orders"
    return sum((folder / path).stat().st_size for _, _, path in shop.timeline.written_files(commit))


def bytes_of_a_changed_row(
    spark: SparkSession, shop: Orders, monkeypatch: pytest.MonkeyPatch, rows: int
) -> dict[str, int]:
    """By the way in which it is written. The table has no partitions. A row of it changes, then a new one comes."""
    shop.table = replace(shop.table, record_key=("id",), partition_column=None, max_file_mib=1)
    load(spark, shop, rows)
    written: dict[str, int] = {}
    for hour, (way, most_rows) in enumerate(WAYS.items()):
        monkeypatch.setattr(small_batches, "MAX_ROWS", most_rows)
        for minute, id_ in enumerate((5, NEW * 4 + hour)):
            shop.sql("delete from orders")
            shop.add((id_, "2026-01-06", -1.0, f"2026-11-17 0{hour}:0{minute}:00"))
            report = shop.run(spark, "incremental", f"{way}{minute}")
            assert (report.error, report.counts.applied) == (None, 1)
            written[way] = max(written.get(way, 0), written_bytes(shop))
    return written


def test_a_changed_row_writes_as_much_in_a_large_table_as_in_a_small_one(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = bytes_of_a_changed_row(spark, Orders(tmp_path / "small", index="memory"), monkeypatch, NEW // 5)
    shop = Orders(tmp_path / "large", index="memory")
    large = bytes_of_a_changed_row(spark, shop, monkeypatch, LARGE)
    assert sum(path.stat().st_size for path in shop.folder.glob("lake/orders/*.parquet")) > 5 * max(small.values())
    assert max(*small.values(), *large.values()) <= 1.2 * MIB, (small, large)


def test_many_new_rows_of_one_partition_fill_several_files(spark: SparkSession, tmp_path: Path) -> None:
    """Of the size that the files before have taught: not too many."""
    shop = Orders(tmp_path)
    shop.table = replace(shop.table, max_file_mib=1)
    shop.fill(150_000, days=1)
    assert shop.run(spark, "bootstrap", "b").error is None
    shop.sql("delete from orders")
    shop.add(*((NEW + number, "2026-11-01", 1.0, "2026-11-17 08:00:00") for number in range(150_000)))
    assert shop.run(spark, "incremental", "i").written.inserts == 150_000
    sizes = [path.stat().st_size for path in (tmp_path / "lake" / "orders" / "day=2026-11-01").glob("*.parquet")]
    assert max(sizes) <= 2 * MIB
    assert len(sizes) <= 3 * sum(sizes) / MIB, sizes


def test_no_footer_holds_a_filter_of_the_keys_and_who_asks_for_one_is_not_misled(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Hudi's writer of first loads knows no other way than to write one: 430 kB for each file, whatever it holds."""
    shop = Orders(tmp_path)
    shop.fill(30)
    assert shop.run(spark, "bootstrap", "b").error is None
    files = list((tmp_path / "lake" / "orders").glob("day=*/*.parquet"))
    footers = [pq.read_metadata(file) for file in files]
    assert len(files) >= 3
    assert max(len((footer.metadata or {}).get(b"org.apache.hudi.bloomfilter", b"")) for footer in footers) < 100
    assert max(footer.serialized_size for footer in footers) < 10_000
    # Another writer, with its own filters and an index of all of them.
    ours = hudi.table_options(shop.table, parallelism=2)
    by_filters = {name: value for name, value in ours.items() if "bloom" not in name}
    by_filters |= {"hoodie.index.type": "BLOOM", "hoodie.metadata.index.bloom.filter.enable": "true"}
    types = ", ".join(f"`{name}` {type_}" for name, type_ in hudi.stored_schema(spark, shop.table).types.items())
    changed = spark.createDataFrame([(7, "2026-11-02", -7.0, datetime(2026, 11, 17, tzinfo=UTC))], types)
    changed.write.format("hudi").options(**by_filters).mode("append").save(shop.table.uri)
    expected = [(7, "2026-11-02", -7.0) if row[0] == 7 else row for row in shop.source_rows()]
    assert shop.rows(spark) == sorted(expected, key=str)
