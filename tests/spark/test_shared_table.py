"""Several jobs on one table at once: each reads when it likes, and the end is as if one had run after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.report import JobReport
from ingestion.spark.contract.spec import DeleteSpec
from ingestion.spark.execute import execute
from ingestion.spark.loading import committing
from ingestion.spark.tables import hudi
from tests.spark.order_shop import Orders, read

NINE, TEN, ELEVEN = (f"2026-11-16 {hour}:00:00" for hour in ("09", "10", "11"))
DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")


class BusyTable:
    """Before the lease is granted for the first, the second, ... time, these others run: the job has read its source by then."""

    def __init__(self, *others: Callable[[], object]) -> None:
        self._others: Iterator[Callable[[], object]] = iter(others)
        self.is_held = False

    def try_acquire(self) -> bool:
        next(self._others, lambda: None)()
        self.is_held = True
        return True

    def release(self) -> None:
        self.is_held = False


def run_beside(
    spark: SparkSession, orders: Orders, kind: str, run: str, *others: Callable[[], object], **fields: Any
) -> JobReport:
    busy = BusyTable(*others)
    report = execute(orders.spec(kind, run, **fields), spark=spark, secrets=orders.secrets, lease=busy)
    assert not busy.is_held
    return report


@pytest.mark.parametrize("reference_key", ["updated_at", None])
def test_a_backfill_an_incremental_and_a_delete_end_as_if_one_had_run_after_the_other(
    spark: SparkSession, orders: Orders, reference_key: str | None
) -> None:
    orders.table = replace(orders.table, reference_key=reference_key)
    orders.fill(9)
    assert orders.run(spark, "bootstrap", "b").error is None
    orders.add((20, DAYS[0], 2.0, "2026-11-16 07:00:00"))  # what only a backfill finds

    def change_and_delete() -> None:
        orders.change(1, 10.0, NINE)
        assert orders.run(spark, "incremental", "i1").counts.applied == 1
        orders.sql("delete from orders where id = 3")
        deleted = orders.run(spark, "delete", "d", delete=DeleteSpec(keys=(("3", DAYS[0]),)))
        assert deleted.written.deletes == 1

    def change_again() -> None:
        orders.change(4, 40.0, TEN)
        orders.add((9, DAYS[0], 9.0, TEN))
        assert orders.run(spark, "incremental", "i2").counts.applied == 2

    report = run_beside(spark, orders, "backfill", "f", change_and_delete, change_again, partitions=DAYS)
    assert (report.status, report.error) == ("succeeded", None)
    assert (report.counts.read, report.counts.applied, report.counts.superseded) == (9, 1, 1)
    assert orders.rows(spark) == orders.source_rows()
    checkpoint = orders.timeline.checkpoint()
    assert checkpoint is not None
    assert checkpoint.commits_since == 1  # the backfill's own
    assert checkpoint.instant == next(c.instant for c in orders.timeline.commits() if c.run["run_id"] == "i2")
    assert orders.run(spark, "incremental", "i3").status == "nothing_to_do"


def test_an_incremental_reads_again_where_another_has_moved_the_checkpoint(spark: SparkSession, orders: Orders) -> None:
    orders.fill(3)
    orders.run(spark, "bootstrap", "b")
    orders.change(0, 5.0, NINE)

    def go_further() -> None:
        orders.change(1, 6.0, TEN)
        assert orders.run(spark, "incremental", "i2").counts.applied == 2

    report = run_beside(spark, orders, "incremental", "i1", go_further)
    assert (report.status, report.error) == ("nothing_to_do", None)
    assert orders.rows(spark) == orders.source_rows()
    orders.change(2, 7.0, ELEVEN)
    assert orders.run(spark, "incremental", "i3").counts.applied == 1

    moved = [(lambda n=n: _move_on(spark, orders, n)) for n in range(3)]
    orders.change(0, 8.0, "2026-11-16 12:00:00")
    report = run_beside(spark, orders, "incremental", "i4", *moved)
    assert report.status == "failed"
    assert "was read 3 times" in (report.error or "")


@pytest.mark.parametrize("often", [1, 3])
def test_a_batch_is_judged_again_where_another_writer_commits_before_it_is_written(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch, often: int
) -> None:
    """One that asks for no permit: here a job of ours that does not know the table's fence."""
    orders.fill(3)
    orders.run(spark, "bootstrap", "b")
    orders.change(0, 5.0, NINE)
    orders.change(1, 6.0, NINE)
    check_balance, commits = committing.check_balance, iter(range(often))

    def commit_meanwhile(*arguments: Any) -> None:
        check_balance(*arguments)
        if (number := next(commits, None)) is not None:
            _write_beside(spark, orders, 1, 70.0 + number, f"2026-11-16 1{number}:00:00")

    monkeypatch.setattr(committing, "check_balance", commit_meanwhile)
    report = orders.run(spark, "incremental", "i")
    if often == 1:
        assert (report.status, report.error) == ("succeeded", None)
        assert (report.counts.applied, report.counts.superseded) == (1, 1)
        assert [row[2] for row in orders.rows(spark)] == [5.0, 70.0, 2.0]
    else:
        assert "Another writer has committed" in (report.error or "")
        assert [row[2] for row in orders.rows(spark)] == [0.0, 72.0, 2.0]


def _write_beside(spark: SparkSession, orders: Orders, number: int, amount: float, at: str) -> None:
    rows = read(spark, orders.table.uri).where(f"id = {number}").drop(*hudi.META_COLUMNS)
    changed = rows.selectExpr("id", "day", f"{amount}D as amount", f"timestamp '{at}' as updated_at")
    hudi.write_commit(changed, orders.table, "upsert", {"hoodie.metadata.enable": "false"}, {})


def _move_on(spark: SparkSession, orders: Orders, number: int) -> None:
    orders.change(1, 100.0 + number, f"2026-11-16 13:0{number}:00")
    orders.change(2, 100.0 + number, f"2026-11-16 13:0{number}:30")
    assert orders.run(spark, "incremental", f"moved {number}").error is None
    orders.change(0, 200.0 + number, f"2026-11-16 13:0{number}:45")
