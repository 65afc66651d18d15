"""A job that is killed at a named place and run again leaves each row once, and a checkpoint that is true."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark.job_processes import died_at
from tests.spark.order_shop import Orders

LATER = "2026-11-16 09:00:00"
BEFORE, INSIDE, AFTER = "ingestion.before_write", "ingestion.inside_commit", "ingestion.after_commit"


@pytest.mark.parametrize(("failpoint", "commits"), [(BEFORE, 1), (INSIDE, 1), (AFTER, 2)])
def test_an_incremental_is_neither_lost_nor_doubled(
    spark: SparkSession, orders: Orders, failpoint: str, commits: int
) -> None:
    _shop(orders)
    orders.run(spark, "bootstrap", "b")
    _changes(orders)
    died_at(orders, "incremental", "i", failpoint)
    assert len(orders.timeline.commits()) == commits
    report = orders.run(spark, "incremental", "i")
    assert (report.status, report.error, report.counts.applied) == ("succeeded", None, 3)
    _assert_exactly_once(spark, orders)


def test_a_bootstrap_that_died_within_its_commit_is_done_again(spark: SparkSession, orders: Orders) -> None:
    _shop(orders)
    _changes(orders)
    died_at(orders, "bootstrap", "b", INSIDE)
    assert orders.timeline.commits() == ()
    assert orders.run(spark, "bootstrap", "b").counts.applied == 22
    _assert_exactly_once(spark, orders)


def _shop(orders: Orders) -> None:
    orders.fill(20)


def _changes(orders: Orders) -> None:
    """An update, two inserts, and a row that does not fit."""
    orders.change(3, 33.0, LATER)
    orders.add((50, "2026-11-01", 5.0, LATER), (51, "2026-11-05", 5.1, LATER), (52, None, 1.0, LATER))


def _assert_exactly_once(spark: SparkSession, orders: Orders) -> None:
    assert orders.rows(spark) == [row for row in orders.source_rows() if row[1]]
    assert [column for column, _ in orders.errors(spark)] == ["day"]
    assert orders.run(spark, "incremental", "and after").status == "nothing_to_do"
    assert orders.timeline.checkpoint() is not None
