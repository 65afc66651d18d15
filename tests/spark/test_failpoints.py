"""A job that is killed at a named place and run again leaves each row once, and a checkpoint that is true."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from ingestion.domain.checkpoint import unfinished_snapshot
from ingestion.spark.contract.spec import DeleteSpec
from ingestion.spark.job import Job
from tests.spark.job_processes import died_at
from tests.spark.order_shop import Orders

LATER = "2026-11-16 09:00:00"
BEFORE, INSIDE, AFTER = "ingestion.before_write", "ingestion.inside_commit", "ingestion.after_commit"
PLACES = ((BEFORE, 1), (INSIDE, 1), (AFTER, 2))
"""And the commits that are there then."""


def test_an_incremental_that_is_killed_at_every_place_is_neither_lost_nor_doubled(
    spark: SparkSession, orders: Orders
) -> None:
    _shop(orders)
    orders.run(spark, "bootstrap", "b")
    _changes(orders)
    for failpoint, commits in PLACES:
        died_at(orders, "incremental", "i", failpoint)
        assert len(orders.timeline.commits()) == commits
    report = orders.run(spark, "incremental", "i")
    assert (report.status, report.error, report.counts.applied) == ("succeeded", None, 3)
    _assert_exactly_once(spark, orders)


def test_a_delete_that_is_killed_at_every_place_is_neither_lost_nor_doubled(
    spark: SparkSession, orders: Orders
) -> None:
    _shop(orders)
    orders.run(spark, "bootstrap", "b")
    orders.sql("delete from orders where id = 3")
    doomed = DeleteSpec(keys=(("3", "2026-11-01"),))
    for failpoint, commits in PLACES:
        died_at(orders, "delete", "d", failpoint, delete=doomed)
        assert len(orders.timeline.commits()) == commits
    report = orders.run(spark, "delete", "d", delete=doomed)
    assert (report.status, report.error, report.written.deletes) == ("succeeded", None, 1)
    assert orders.rows(spark) == orders.source_rows()


def test_a_bootstrap_that_died_within_its_commit_is_done_again(spark: SparkSession, orders: Orders) -> None:
    _shop(orders)
    _changes(orders)
    died_at(orders, "bootstrap", "b", INSIDE)
    assert orders.timeline.commits() == ()
    assert orders.run(spark, "bootstrap", "b").counts.applied == 22
    _assert_exactly_once(spark, orders)


def test_a_bootstrap_in_ranges_goes_on_after_its_last_commit(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed twice, out of time once, and changed behind where it is: each row is in the table once, as the source has it."""
    _shop(orders)
    orders.source = replace(orders.source, commit_rows=5)
    died_at(orders, "bootstrap", "b", "ingestion.between_commits")
    assert "has loaded a part of it" in (orders.run(spark, "incremental", "early").error or "")
    died_at(orders, "bootstrap", "b", "ingestion.between_commits")
    _changes(orders)
    with monkeypatch.context() as short:
        short.setattr(Job, "has_time_for_more", False)
        part = orders.run(spark, "bootstrap", "b")
    assert (part.status, part.counts.applied, part.has_more) == ("unfinished", 15, True)
    report = orders.run(spark, "bootstrap", "b")
    assert (report.status, report.error, report.run_id) == ("succeeded", None, "b")
    commits = orders.timeline.commits()
    assert [commit.run["run_id"] for commit in commits] == ["b", "b#2", "b#3", "b#4", "b#5"]
    assert {commit.operation for commit in commits} == {"BULK_INSERT"}
    assert [unfinished_snapshot(commit.checkpoint or {}) is None for commit in commits] == [False] * 4 + [True]
    assert orders.run(spark, "bootstrap", "another").status == "nothing_to_do"
    assert orders.run(spark, "incremental", "i").counts.applied == 1  # the row that changed after its range was read
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
