"""A table whose partition column holds times is loaded into partitions with names, whatever job writes it; what is none is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.spec import JobSpec, PartitionSpec
from lakehub.catalog.metadata.tables import HudiCopy
from quality.domain.language.measures import ROWS
from quality.engines.duckdb import DuckDbEngine
from quality.engines.scans.parts import EachPartition, OnePartition
from quality.engines.scans.scan import Limits, Scan
from tests.spark.order_shop import Orders

LAKE_COLUMN = "_lakehub_partition"
NEW_YORK = "America/New_York"
LATER = "2026-11-17 09:00:00"


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    """Cut by the day of `placed_at` in New York, on the clock that the source shows."""
    shop = Orders(tmp_path)
    shop.sql("drop table orders")
    shop.sql("create table orders(id integer, placed_at timestamp, amount real, updated_at timestamp)")
    shop.table = replace(
        shop.table,
        record_key=("id",),
        partition_column=LAKE_COLUMN,
        partition_from=PartitionSpec(("placed_at",), "day", NEW_YORK, "time"),
    )
    shop.add(
        *((number, f"2026-11-{number % 3 + 1:02} {number % 24:02}:30:00", 1.0, LATER) for number in range(48)),
    )
    return shop


def rows_by_partition(orders: Orders) -> object:
    scan = Scan(HudiCopy(orders.table.uri), (ROWS,), EachPartition(LAKE_COLUMN))
    return DuckDbEngine().measure(scan, Limits()).answers[ROWS]


def test_a_column_of_times_is_loaded_and_measured_by_day(spark: SparkSession, orders: Orders) -> None:
    orders.add((100, None, 1.0, LATER), (101, "1850-01-01 00:00:00", 1.0, LATER))
    spec = orders.spec("bootstrap", "b")
    assert JobSpec.from_json(spec.to_json()) == spec
    report = orders.run(spark, "bootstrap", "b")
    assert (report.status, report.error) == ("succeeded", None)
    assert report.partitions == {"2026-11-01": 16, "2026-11-02": 16, "2026-11-03": 16}
    assert rows_by_partition(orders) == report.partitions
    part = Scan(HudiCopy(orders.table.uri), (ROWS,), OnePartition(LAKE_COLUMN, "2026-11-02"))
    assert DuckDbEngine().measure(part, Limits()).answers[ROWS] == 16
    (commit,) = orders.timeline.commits()
    assert commit.run["misplaced"] == {"None": 1, "1850-01-01 00:00:00+00:00": 1}
    assert commit.run["misplaced_totals"] == {"values": 2, "rows": 2}
    assert report.counts.errors == 2
    assert {column for column, _ in orders.errors(spark)} == {"placed_at"}


def test_what_comes_later_goes_to_its_own_day_and_a_backfill_reads_one_day(spark: SparkSession, orders: Orders) -> None:
    orders.run(spark, "bootstrap", "b")
    orders.add((200, "2026-11-04 00:00:00", 2.0, "2026-11-17 10:00:00"))
    assert orders.run(spark, "incremental", "i").partitions == {"2026-11-04": 1}
    orders.sql("update orders set amount = 5, updated_at = '2026-11-17 08:00:00' where id < 6")
    orders.sql("update orders set updated_at = '2026-11-17 11:00:00' where id < 3")
    report = orders.run(spark, "backfill", "f", partitions=("2026-11-02",))
    assert (report.status, report.counts.read, report.partitions) == ("succeeded", 16, {"2026-11-02": 1})
    amounts = dict(orders.rows(spark, "id", "amount"))
    assert [amounts[number] for number in range(6)] == [1.0, 5.0, 1.0, 1.0, 1.0, 1.0]
