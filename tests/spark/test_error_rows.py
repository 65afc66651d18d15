"""What jobs put into an error table is read without Spark, as it was written."""

from __future__ import annotations

import json

from pyspark.sql import SparkSession

from ingestion.lake.error_rows import ErrorCursor, ErrorFilters, count_errors, read_error_page, read_error_row
from tests.spark.order_shop import Orders

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


def test_a_drop_takes_the_rows_along(spark: SparkSession, orders: Orders) -> None:
    orders.fill(3)
    orders.add((3, "2026-11-01", "much", "2026-11-16 08:00:00"))
    orders.run(spark, "bootstrap", "b")
    orders.run(spark, "drop", "d")
    assert count_errors(orders.table.error_uri).rows == 0
