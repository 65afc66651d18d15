"""Bad input gets a clear error, and nothing is half done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.hudi_tables import hudi_table
from tests.spark.order_shop import Orders


def test_a_path_that_is_not_a_table(spark: SparkSession, orders: Orders) -> None:
    folder = _folder(orders)
    folder.mkdir(parents=True)
    (folder / "letter.txt").write_text("dear reader")
    error = orders.run(spark, "incremental", "i").error or ""
    assert error.startswith("NotATable: ")
    assert "is a folder but not a Hudi table" in error


def test_a_bootstrap_does_not_write_over_other_files(spark: SparkSession, orders: Orders) -> None:
    folder = _folder(orders)
    folder.mkdir(parents=True)
    (folder / "letter.txt").write_text("dear reader")
    assert "letter.txt lies there" in (orders.run(spark, "bootstrap", "b").error or "")
    assert (folder / "letter.txt").read_text() == "dear reader"


def test_a_bootstrap_removes_no_table_of_another_layout(spark: SparkSession, orders: Orders) -> None:
    """Its commits lie where we do not look: it must not pass for one that has none."""
    orders.fill(3)
    hudi_table(_folder(orders), {"2026-11-01": pa.table({"id": [1, 2]})}, column="day")
    for replaces in (False, True):
        error = orders.run(spark, "bootstrap", f"b{replaces}", replace=replaces).error or ""
        assert "its hoodie.table.version is `6` instead of `9`. Nothing was removed" in error
    assert len([*_folder(orders).rglob("*.parquet")]) == 1


def test_a_bootstrap_removes_no_file_that_no_write_of_ours_began(spark: SparkSession, orders: Orders) -> None:
    orders.fill(3)
    (_folder(orders) / ".hoodie" / "timeline").mkdir(parents=True)
    (_folder(orders) / ".hoodie" / "hoodie.properties").write_text("hoodie.table.version=9\n")
    stray = _folder(orders) / "day=2026-11-01" / "a-0_0-0-0_20261116120000000.parquet"
    stray.parent.mkdir()
    stray.write_bytes(b"PAR1")
    error = orders.run(spark, "bootstrap", "b1").error or ""
    assert "day=2026-11-01/a-0_0-0-0_20261116120000000.parquet belongs to no write that was begun" in error
    (_folder(orders) / ".hoodie" / "timeline" / "20261116120000000.commit.requested").touch()
    assert orders.run(spark, "bootstrap", "b2").counts.applied == 3


def test_a_replacement_by_nothing_is_refused(spark: SparkSession, orders: Orders) -> None:
    orders.fill(3)
    orders.run(spark, "bootstrap", "b")
    orders.sql("delete from orders")
    error = orders.run(spark, "bootstrap", "again", replace=True).error or ""
    assert "The source has no row that fits (0 read, 0 do not fit), so replacing would empty the table" in error
    assert len(orders.timeline.commits()) == 1
    assert len(orders.rows(spark)) == 3


def test_a_key_that_the_source_lacks(spark: SparkSession, orders: Orders) -> None:
    orders.table = replace(orders.table, record_key=("idd", "day"))
    assert "has no column `idd`. Did you mean `id`?" in (orders.run(spark, "bootstrap", "b").error or "")
    assert not orders.timeline.exists


def test_a_table_that_the_source_lacks(spark: SparkSession, orders: Orders) -> None:
    orders.source = replace(orders.source, object="order")
    assert "no table `order`. Did you mean `orders`?" in (orders.run(spark, "bootstrap", "b").error or "")


def test_a_source_that_cannot_be_reached(spark: SparkSession, orders: Orders) -> None:
    orders.database.unlink()
    assert "There is no SQLite database at" in (orders.run(spark, "bootstrap", "b").error or "")


def test_an_incremental_before_the_bootstrap(spark: SparkSession, orders: Orders) -> None:
    assert "does not exist, so it is no table" in (orders.run(spark, "incremental", "i").error or "")


def test_other_keys_than_the_table_was_made_with(spark: SparkSession, orders: Orders) -> None:
    orders.fill(3)
    orders.run(spark, "bootstrap", "b")
    orders.table = replace(orders.table, record_key=("id",))
    error = orders.run(spark, "incremental", "i").error or ""
    assert "has the record key `id,day`, but the spec says `id`" in error


def test_a_secret_that_nobody_gave(spark: SparkSession, orders: Orders) -> None:
    orders.source = replace(orders.source, url_ref="env:NOBODY_KNOWS")
    assert "The secret `NOBODY_KNOWS` was not given" in (orders.run(spark, "bootstrap", "b").error or "")


def test_an_unbalanced_sum_stops_the_commit(spark: SparkSession, orders: Orders) -> None:
    """A table that holds a key twice, as other writers can make it, would count one event two times."""
    orders.fill(3, days=1)
    orders.run(spark, "bootstrap", "b")
    _double_the_rows(orders)
    orders.change(1, 9.0, "2026-11-16 09:00:00")
    report = orders.run(spark, "incremental", "i")
    assert report.status == "failed"
    assert "are not accounted for" in (report.error or "")
    assert len(orders.timeline.commits()) == 1


def _folder(orders: Orders) -> Path:
    return Path(unquote(urlsplit(orders.table.uri).path))


def _double_the_rows(orders: Orders) -> None:
    """A second file group with the same rows, as two writers that insert the same new keys would leave it."""
    for file in [*_folder(orders).glob("day=*/*.parquet")]:
        group, rest = file.name.split("_", 1)
        file.with_name(f"{group[:-3]}77-0_{rest}").write_bytes(file.read_bytes())
