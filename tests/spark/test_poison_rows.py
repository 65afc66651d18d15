"""A row that cannot be fitted, written down, staged or stored never ends the batch that it came with, or the feed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.lake.error_rows import ErrorFilters, read_error_page
from ingestion.spark.indexes import INDEXES
from tests.spark.order_shop import Orders

AT = "2026-11-17 08:00:00"
DAY = "2026-11-01"
AWKWARD: tuple[tuple[Any, ...], ...] = (
    (None, DAY, 1.0, AT),
    ("x" * 40_000, DAY, 1.0, AT),
    ("a\0b", DAY, 1.0, AT),
    ("a\nb:c,d/e\\f'g\"h`i%20", DAY, 1.0, AT),
    ("__null__", DAY, 1.0, AT),
    ("__empty__", DAY, 1.0, AT),
    ("😀\u202e", DAY, 1.0, AT),
    (b"\xff\xfe", DAY, 1.0, AT),
    ("", DAY, 1.0, AT),
    ("blob", DAY, b"\xff\0", AT),
    ("word", DAY, "much", AT),
    ("infinite", DAY, float("inf"), AT),
    ("long", DAY, "9" * 5_000, AT),
    ("whole", DAY, 2**63 - 1, AT),
    ("no time", DAY, 1.0, "yesterday"),
    ("early", DAY, 1.0, "0001-01-01 00:00:00"),
    ("slash", "a/b", 1.0, AT),
    ("dots", "..", 1.0, AT),
    ("colon", "a:b", 1.0, AT),
    ("nul", "a\0b", 1.0, AT),
    ("no day", None, 1.0, AT),
    ("long day", "d" * 300, 1.0, AT),
    ("bytes day", b"\xff", 1.0, AT),
)


def shop(folder: Path, index: str) -> Orders:
    orders = Orders(folder, index=index)
    orders.table = replace(orders.table, record_key=("id",))
    orders.sql("drop table orders")
    orders.sql("create table orders(id text, day text, amount real, updated_at timestamp)")
    orders.add(("first", DAY, 1.0, "2026-11-16 08:00:00"))
    return orders


ONE_BY_ONE = "record_index"
"""It refuses the most."""


def test_no_row_stops_a_feed(spark: SparkSession, tmp_path: Path) -> None:
    """Each is in a batch of its own, beside a row that fits."""
    orders = shop(tmp_path, ONE_BY_ONE)
    assert orders.run(spark, "bootstrap", "b").error is None
    for number, row in enumerate(AWKWARD):
        at = f"2026-11-17 09:{number:02}:00"
        orders.add((*row[:3], at if row[3] == AT else row[3]), (f"good {number}", DAY, 1.0, at))
        report = orders.run(spark, "incremental", f"i{number}")
        assert (report.error, report.status) == (None, "succeeded"), row
        assert report.is_accounted
    stored = {key for (key,) in orders.rows(spark, "id")}
    assert {f"good {number}" for number in range(len(AWKWARD))} <= stored


@pytest.mark.parametrize("index", list(INDEXES))
def test_all_of_them_in_one_batch(spark: SparkSession, tmp_path: Path, index: str) -> None:
    orders = shop(tmp_path, index)
    assert orders.run(spark, "bootstrap", "b").error is None
    orders.add(*AWKWARD, ("good", DAY, 1.0, AT))
    report = orders.run(spark, "incremental", "i")
    assert report.error is None
    assert report.is_accounted
    assert (report.counts.errors > 8, report.counts.applied > 5) == (True, True)
    assert ("good",) in orders.rows(spark, "id")
    errors = read_error_page(orders.table.error_uri, ErrorFilters()).rows
    assert len(errors) == report.counts.errors
    assert all(json.loads(row.raw) for row in errors if not row.is_cut)
