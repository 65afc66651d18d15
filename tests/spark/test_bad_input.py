"""Bad input gets a clear error, and nothing is half done."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from urllib.parse import unquote, urlsplit

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ingestion.spark.loading import small_batches
from tests.hudi_tables import hudi_table
from tests.spark.order_shop import Orders, read


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


def test_whole_numbers_in_a_decimal_column_reach_the_lake(spark: SparkSession, orders: Orders) -> None:
    orders.sql("drop table orders")
    orders.sql("create table orders(id integer, day text, amount decimal(12,2), updated_at timestamp)")
    at = "2026-11-16 08:00:00"
    orders.add(*((number, "2026-11-01", number / 4, at) for number in range(0, 40, 2)), (40, "2026-11-01", 0.125, at))
    report = orders.run(spark, "bootstrap", "b")
    assert (report.error, report.counts.errors) == (None, 1)
    assert orders.rows(spark, "amount") == sorted([(Decimal(f"{n / 4:.2f}"),) for n in range(0, 40, 2)], key=str)
    assert orders.errors(spark) == [("amount", "`amount` is 0.125 (float), which is no decimal(12,2)")]


def test_rows_without_a_record_key_are_refused_with_their_number_at_the_first_load_only(
    spark: SparkSession, orders: Orders
) -> None:
    orders.fill(3)
    orders.add(*((None, "2026-11-01", 1.0, "2026-11-16 08:00:00") for _ in range(2)))
    error = orders.run(spark, "bootstrap", "b").error or ""
    assert "Of 5 rows some have no record key (id, day); null is `id` in 2. Nothing was written." in error
    assert not orders.timeline.exists
    orders.sql("delete from orders where id is null")
    assert orders.run(spark, "bootstrap", "again").counts.applied == 3
    orders.add((None, "2026-11-01", 1.0, "2026-11-17 08:00:00"))
    assert orders.run(spark, "incremental", "i").counts.errors == 1


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


def test_an_unbalanced_sum_stops_the_commit(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that holds a key twice, as other writers can make it, would count one event two times."""
    orders.fill(3, days=1)
    orders.run(spark, "bootstrap", "b")
    _double_the_rows(orders)
    orders.change(1, 9.0, "2026-11-16 09:00:00")
    report = orders.run(spark, "incremental", "i")
    assert report.status == "failed"
    assert "holds record keys of this batch more than once (1)" in (report.error or "")
    assert "id:1" not in (report.error or ""), "everybody sees the error of a run"
    monkeypatch.setattr(small_batches, "MAX_ROWS", 0)
    assert "rows read for `orders` are not accounted for" in (orders.run(spark, "incremental", "j").error or "")
    assert len(orders.timeline.commits()) == 1


def _folder(orders: Orders) -> Path:
    return Path(unquote(urlsplit(orders.table.uri).path))


def _double_the_rows(orders: Orders) -> None:
    """A second file group with the same rows, as two writers that insert the same new keys would leave it."""
    for file in [*_folder(orders).glob("day=*/*.parquet")]:
        group, rest = file.name.split("_", 1)
        file.with_name(f"{group[:-3]}77-0_{rest}").write_bytes(file.read_bytes())


def test_times_before_1900_are_loaded_changed_and_read_as_they_are(spark: SparkSession, orders: Orders) -> None:
    """Spark refused to read what was staged of them."""
    orders.sql("alter table orders add column born timestamp")
    born = ("1850-01-01 12:30:00", "1582-10-10 00:00:00", "1900-01-01 00:00:00", None)
    at = "2026-11-16 08:00:00"
    orders.add(*((number, "2026-11-01", 1.0, at, value) for number, value in enumerate(born)))
    assert orders.run(spark, "bootstrap", "b").counts.applied == 4
    orders.change(0, 2.0, "2026-11-16 09:00:00")
    assert orders.run(spark, "incremental", "i").counts.applied == 1
    files = [
        str(file) for file in (orders.folder / "lake" / "orders").rglob("*.parquet") if ".hoodie" not in file.parts
    ]
    newest = "select id, strftime(born, '%Y-%m-%d %H:%M:%S') from read_parquet($files) where id < 4 order by _hoodie_commit_time"
    by_duckdb = dict(duckdb.sql(newest, params={"files": files}).fetchall())
    assert tuple(by_duckdb[number] for number in range(4)) == born
    by_spark = read(spark, orders.table.uri).selectExpr("id", "date_format(born, 'yyyy-MM-dd HH:mm:ss')").collect()
    assert {row[0]: row[1] for row in by_spark} == dict(enumerate(born))
