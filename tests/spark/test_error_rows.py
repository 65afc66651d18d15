"""What jobs put into an error table is read without Spark, as it was written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from pyspark.sql import SparkSession

from ingestion.lake.error_rows import ErrorCursor, ErrorFilters, count_errors, read_error_page, read_error_row
from ingestion.spark.contract.spec import ReplaySpec
from ingestion.spark.loading import write_path
from ingestion.spark.rejected import error_table
from ingestion.spark.rejected.error_table import error_table_spec
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import Timeline
from tests.spark.order_shop import Orders, read
from tests.spark.test_small_batches import Counted, counting

ALL = ErrorFilters()


def test_rows_that_jobs_reject_are_read_newest_first(spark: SparkSession, orders: Orders) -> None:
    uri = orders.table.error_uri
    assert read_error_page(uri, ALL).rows == ()
    orders.fill(3)
    orders.add((3, "2026-11-01", "much", "2026-11-16 08:00:00"), (4, "a/b", 1.0, "2026-11-16 08:00:00"))
    assert orders.run(spark, "bootstrap", "b").counts.errors == 2
    orders.add((5, "2026-11-01", "<script>", "2026-11-17 08:00:00"))
    assert orders.run(spark, "incremental", "i").counts.errors == 1
    newest, *older = read_error_page(uri, ALL).rows
    assert (newest.column, newest.run, newest.source) == ("amount", "i", "orders")
    assert newest.reason == '`amount` is "<script>" (str), which is no double'
    assert json.loads(newest.raw)["id"] == 5
    assert {row.column for row in older} == {"amount", "day"}
    assert newest.read_at > older[0].read_at == older[1].read_at
    assert read_error_row(uri, newest.error_key) == newest


def test_pages_and_counts_are_of_all_commits(spark: SparkSession, orders: Orders) -> None:
    uri = orders.table.error_uri
    orders.fill(3)
    orders.add(*((number, "2026-11-01", "much", "2026-11-16 08:00:00") for number in range(3, 10)))
    orders.run(spark, "bootstrap", "b")
    orders.add(*((number, "2026-11-01", "more", "2026-11-17 08:00:00") for number in range(10, 12)))
    orders.run(spark, "incremental", "i")
    first = read_error_page(uri, ALL, limit=4)
    rest = read_error_page(uri, ALL, after=ErrorCursor.parse(first.next_cursor))
    keys = [row.error_key for page in (first, rest) for row in page.rows]
    assert (len(keys), len(set(keys)), rest.next_cursor) == (9, 9, "")
    (group,) = count_errors(uri).groups
    assert (group.column, group.kind, group.rows) == ("amount", "not a valid double", 9)
    assert len(read_error_page(uri, ErrorFilters(run="i")).rows) == 2


def test_a_row_that_is_read_again_is_there_once(spark: SparkSession, orders: Orders) -> None:
    orders.fill(3)
    orders.add((3, "2026-11-01", "much", "2026-11-16 08:00:00"))
    orders.run(spark, "bootstrap", "b")
    orders.run(spark, "bootstrap", "again", replace=True)
    (row,) = read_error_page(orders.table.error_uri, ALL).rows
    assert row.run == "again"


def test_a_job_that_dies_after_its_errors_does_not_append_them_again(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither when it is tried again, nor when another run reads the same rows."""
    orders.fill(3)
    orders.run(spark, "bootstrap", "b")
    orders.add((3, "2026-11-01", "much", "2026-11-17 08:00:00"), (4, "2026-11-01", "more", "2026-11-17 08:00:00"))
    with monkeypatch.context() as patched:
        patched.setattr(write_path, "commit_once", _die)
        assert [orders.run(spark, "incremental", run).status for run in ("i", "i", "j")] == ["failed"] * 3
    assert orders.run(spark, "incremental", "j").counts.errors == 2
    assert len(Timeline(orders.table.error_uri).commits()) == 1
    assert read(spark, orders.table.error_uri).count() == 2


@pytest.mark.parametrize("most_at_once", [10_000, 0], ids=["directly", "spark"])
def test_rows_that_each_look_rejects_again_are_appended_once(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch, most_at_once: int
) -> None:
    """However the others change. One that a replay has resolved stays so, as long as the source has it as it was."""
    monkeypatch.setattr(error_table, "_MAX_DIRECT_ROWS", most_at_once)
    orders.source = replace(orders.source, cursor_column=None)
    orders.fill(3)
    bad = [(10 + number, "2026-11-01", f"much {number}", "2026-11-17 08:00:00") for number in range(100)]
    orders.add(*bad)
    assert orders.run(spark, "bootstrap", "b").counts.errors == 100
    for number in range(3):
        orders.sql(f"update orders set amount = 'more {number}' where id = 10")
        assert orders.run(spark, "incremental", f"i{number}").counts.errors == 100
    assert read(spark, orders.table.error_uri).count() == 100 + 3
    uri, resolved = orders.table.error_uri, "much 55"
    (key,) = [row.error_key for row in read_error_page(uri, ALL, limit=200).rows if resolved in row.reason]
    spec = ReplaySpec((key,), "ana", {key: '{"amount": 55.0}'})
    assert orders.run(spark, "replay", "r", replay=spec, source=None).error is None
    orders.sql("update orders set amount = 'most' where id = 10")
    assert orders.run(spark, "incremental", "i3").counts.errors == 100
    assert (row := read_error_row(uri, key)) is not None
    assert row.resolved_by == "ana"
    orders.sql("update orders set amount = 5.5 where id = 11")
    assert orders.run(spark, "incremental", "i4").counts.errors == 99
    assert read(spark, uri).count() - 1 <= read(spark, uri).select("error_key").distinct().count() == 100 + 3 + 1


def _die(*_: object) -> NoReturn:
    raise RuntimeError("dead")


def test_an_error_table_of_an_older_version_gets_the_columns_that_it_lacks(spark: SparkSession, orders: Orders) -> None:
    columns = ("error_key", "column", "reason", "raw", "source", "run")
    old = spark.createDataFrame([("k-0", "amount", "no", "{}", "orders", "r")], columns)
    old = old.selectExpr("*", "timestamp '2026-11-01 00:00:00' as read_at")
    hudi.write_commit(old, error_table_spec(orders.table), "upsert", {"hoodie.metadata.enable": "false"}, {})
    orders.fill(3)
    orders.run(spark, "bootstrap", "b")
    for number in (3, 4):
        orders.add((number, "2026-11-01", "much", f"2026-11-17 0{number}:00:00"))
        assert orders.run(spark, "incremental", f"i{number}").counts.errors == 1
    assert [row.run for row in read_error_page(orders.table.error_uri, ALL).rows] == ["i4", "i3", "r"]


def cost_of_a_rejected_row(spark: SparkSession, orders: Orders, errors: int) -> Counted:
    """In a batch with a row that fits, where the error table holds so many rows; the least of some batches."""
    orders.table = replace(orders.table, record_key=("id",))
    orders.fill(3)
    orders.add((3, "2026-11-01", "much", "2026-11-16 08:00:00"))
    orders.run(spark, "bootstrap", "b")
    stored = spark.read.format("hudi").load(orders.table.error_uri).drop(*hudi.META_COLUMNS)
    # Keys that do not compress: a file of many is then too large to be filled up, which reads it whole.
    keys = "sha2(string(id), 256) as k"
    many = stored.crossJoin(spark.range(errors)).selectExpr("*", keys).drop("error_key", "id")
    many = many.withColumnRenamed("k", "error_key").select(stored.columns)
    hudi.write_commit(many, error_table_spec(orders.table), "bulk_insert", {"hoodie.metadata.enable": "false"}, {})
    measured = []
    for number in range(4):
        at = f"2026-11-17 0{number}:00:00"
        orders.add((5, "2026-11-06", -1.0 - number, at), (10 + number, "2026-11-06", "much", at))
        with counting(spark) as counted:
            report = orders.run(spark, "incremental", f"i{number}")
        assert (report.error, report.counts.applied, report.counts.errors) == (None, 1, 1)
        measured.append(counted)
    assert max(counted.jobs for counted in measured[1:]) == 0
    return min(measured, key=lambda counted: counted.bytes_read)


def test_a_rejected_row_costs_no_spark_job_and_no_more_where_many_were_rejected_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    small = cost_of_a_rejected_row(spark, Orders(tmp_path / "small", index="memory"), 300)
    large = cost_of_a_rejected_row(spark, Orders(tmp_path / "large", index="memory"), 300_000)
    assert large.bytes_read <= 1.5 * small.bytes_read, (small.bytes_read, large.bytes_read)


def test_a_drop_takes_the_rows_along(spark: SparkSession, orders: Orders) -> None:
    orders.fill(3)
    orders.add((3, "2026-11-01", "much", "2026-11-16 08:00:00"))
    orders.run(spark, "bootstrap", "b")
    orders.run(spark, "drop", "d")
    assert count_errors(orders.table.error_uri).rows == 0
