"""Bootstrap, incremental, backfill, delete, drop: what they leave in the table, and what they tell."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from ingestion.domain.accounting import RowCounts
from ingestion.spark.contract.spec import DeleteSpec
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import Timeline
from tests.spark.order_shop import Orders

LATER, LATEST = "2026-11-16 09:00:00", "2026-11-16 10:00:00"


def test_a_bootstrap_loads_every_row_once_and_tells_the_sum(spark: SparkSession, orders: Orders) -> None:
    orders.fill(30)
    report = orders.run(spark, "bootstrap", "b")
    assert (report.status, report.error) == ("succeeded", None)
    assert report.counts == RowCounts(read=30, applied=30)
    assert report.written.inserts == 30
    assert report.partitions == {"2026-11-01": 10, "2026-11-02": 10, "2026-11-03": 10}
    assert report.source_committed_upto == "2026-11-16T08:00:00+00:00"
    assert orders.rows(spark) == orders.source_rows()


def test_a_bootstrap_is_not_done_twice(spark: SparkSession, orders: Orders) -> None:
    orders.fill(6)
    first = orders.run(spark, "bootstrap", "b1")
    second = orders.run(spark, "bootstrap", "b2")
    assert (second.status, second.instant) == ("nothing_to_do", first.instant)
    assert len(orders.timeline.commits()) == 1


def test_the_same_run_tells_the_same_report_again(spark: SparkSession, orders: Orders) -> None:
    orders.fill(6)
    first, second = orders.run(spark, "bootstrap", "b"), orders.run(spark, "bootstrap", "b")
    assert replace(second, phases={}, core_s=None) == replace(first, phases={}, core_s=None)


def test_an_incremental_applies_what_changed_and_carries_the_checkpoint(spark: SparkSession, orders: Orders) -> None:
    orders.fill(6)
    orders.run(spark, "bootstrap", "b")
    orders.change(1, 100.0, LATER)
    orders.add((7, "2026-11-04", 7.0, LATER))
    report = orders.run(spark, "incremental", "i")
    assert report.counts == RowCounts(read=2, applied=2)
    assert (report.written.inserts, report.written.updates) == (1, 1)
    assert orders.rows(spark) == orders.source_rows()
    assert orders.timeline.checkpoint() is not None
    assert orders.timeline.checkpoint().instant == report.instant  # type: ignore[union-attr]  # asserted above


def test_an_incremental_of_many_rows_is_several_commits_of_one_run(spark: SparkSession, orders: Orders) -> None:
    orders.fill(4)
    orders.run(spark, "bootstrap", "b")
    for number in range(6):
        orders.add((10 + number, "2026-11-04", 1.0, f"2026-11-16 09:00:0{number}"))
    orders.source = replace(orders.source, commit_rows=2)
    late = orders.run(spark, "incremental", "late", deadline_s=1e-6)
    assert late.timed_out
    assert "longer than its deadline" in (late.error or "")
    report = orders.run(spark, "incremental", "i")
    assert (report.run_id, report.counts, report.has_more) == ("i", RowCounts(read=6, applied=6), False)
    assert report.partitions == {"2026-11-04": 6}
    assert report.source_committed_upto == "2026-11-16T09:00:05+00:00"
    commits = orders.timeline.commits()[1:]
    assert [commit.run["run_id"] for commit in commits] == ["i", "i#2", "i#3"]
    assert [sum(map(sum, commit.partitions.values())) for commit in commits] == [2, 2, 2]
    assert report.checkpoint == commits[-1].checkpoint
    assert orders.rows(spark) == orders.source_rows()
    again = orders.run(spark, "incremental", "i")  # as if it had died before it could tell what it had committed
    assert (again.counts.applied, again.has_more) == (6, True)
    assert orders.run(spark, "incremental", "next").status == "nothing_to_do"


def test_a_job_that_is_to_commit_once_leaves_the_rest_to_the_next(spark: SparkSession, orders: Orders) -> None:
    orders.fill(4)
    orders.run(spark, "bootstrap", "b")
    for number in range(4):
        orders.add((10 + number, "2026-11-04", 1.0, f"2026-11-16 09:00:0{number}"))
    orders.source = replace(orders.source, commit_rows=2)
    first = orders.run(spark, "incremental", "i", one_commit=True)
    assert (first.counts.applied, first.has_more) == (2, True)
    assert orders.run(spark, "incremental", "j", one_commit=True).counts.applied == 2
    last = orders.run(spark, "incremental", "k", one_commit=True)
    assert (last.status, last.has_more) == ("nothing_to_do", False)
    assert orders.rows(spark) == orders.source_rows()


def test_nothing_new_makes_no_commit(spark: SparkSession, orders: Orders) -> None:
    orders.fill(6)
    orders.run(spark, "bootstrap", "b")
    assert orders.run(spark, "incremental", "i").status == "nothing_to_do"
    assert len(orders.timeline.commits()) == 1


def test_rows_that_come_later_with_the_same_watermark_are_not_missed(spark: SparkSession, orders: Orders) -> None:
    orders.fill(6, at=LATER)
    orders.run(spark, "bootstrap", "b")
    orders.add((6, "2026-11-01", 6.0, LATER))
    orders.change(2, 22.0, LATER)
    report = orders.run(spark, "incremental", "i")
    assert report.counts == RowCounts(read=2, applied=2)
    assert orders.rows(spark) == orders.source_rows()


def test_rows_after_upto_wait(spark: SparkSession, orders: Orders) -> None:
    orders.fill(3)
    orders.add((9, "2026-11-01", 9.0, LATEST))
    orders.run(spark, "bootstrap", "b", upto="2026-11-16T09:00:00Z")
    assert len(orders.rows(spark)) == 3
    assert orders.run(spark, "incremental", "i", upto="2026-11-16T10:00:00Z").counts.applied == 1


def test_an_older_row_is_superseded_and_the_same_row_redelivered(spark: SparkSession, orders: Orders) -> None:
    orders.fill(3, days=1, at=LATER)
    orders.run(spark, "bootstrap", "b")
    orders.change(1, 99.0, "2026-11-16 07:00:00")
    report = orders.run(spark, "backfill", "f", partitions=("2026-11-01",))
    assert report.counts == RowCounts(read=3, superseded=1, redelivered=2)
    assert report.status == "nothing_to_do"
    assert (1, "2026-11-01", 1.0) in orders.rows(spark)


def test_rows_that_do_not_fit_are_in_the_error_table_once(spark: SparkSession, orders: Orders) -> None:
    orders.fill(3)
    orders.add((7, "2026-11-01", "much", LATER), (8, None, 1.0, LATER), (9, "2026-11-01", 1.0, None))
    report = orders.run(spark, "bootstrap", "b")
    again = orders.run(spark, "bootstrap", "again", replace=True)
    assert report.counts == again.counts == RowCounts(read=6, applied=3, errors=3)
    assert [column for column, _ in orders.errors(spark)] == ["amount", "day", "updated_at"]
    assert orders.errors(spark)[0][1] == '`amount` is "much" (str), which is no double'


def test_a_backfill_brings_deleted_rows_back_and_keeps_the_checkpoint(spark: SparkSession, orders: Orders) -> None:
    orders.fill(200, days=2)
    orders.run(spark, "bootstrap", "b")
    before = orders.timeline.checkpoint()
    deleted = orders.run(spark, "delete", "d", partitions=("2026-11-01",), delete=DeleteSpec(share=0.2))
    assert 0 < deleted.written.deletes < 60
    assert deleted.checkpoint is None
    assert len(orders.rows(spark)) == 200 - deleted.written.deletes
    healed = orders.run(spark, "backfill", "f", partitions=("2026-11-01",))
    assert healed.counts.applied == deleted.written.deletes
    after = orders.timeline.checkpoint()
    assert before is not None
    assert after == replace(before, commits_since=2)  # neither carries one
    assert orders.rows(spark) == orders.source_rows()


def test_rows_are_deleted_by_key(spark: SparkSession, orders: Orders) -> None:
    orders.fill(4, days=1)
    orders.run(spark, "bootstrap", "b")
    gone = DeleteSpec(keys=(("1", "2026-11-01"), ("3", "2026-11-01"), ("99", "2026-11-01")))
    assert orders.run(spark, "delete", "d", delete=gone).written.deletes == 2
    assert [row[0] for row in orders.rows(spark)] == [0, 2]


def test_the_checkpoint_is_found_behind_commits_that_carry_none(spark: SparkSession, orders: Orders) -> None:
    orders.fill(20, days=1)
    orders.run(spark, "bootstrap", "b")
    orders.run(spark, "delete", "d", delete=DeleteSpec(share=0.5))
    orders.change(3, 33.0, LATER)
    assert orders.run(spark, "incremental", "i").counts == RowCounts(read=1, applied=1)


def test_a_bootstrap_with_replace_takes_the_place_of_everything(spark: SparkSession, orders: Orders) -> None:
    orders.fill(6)
    orders.run(spark, "bootstrap", "b")
    orders.sql("delete from orders where id < 3")
    report = orders.run(spark, "bootstrap", "again", replace=True)
    assert report.written.inserts == 3
    assert orders.rows(spark) == orders.source_rows()
    assert len(orders.timeline.commits()) == 2


def test_dropping_removes_table_and_errors_and_a_second_drop_has_nothing_to_do(
    spark: SparkSession, orders: Orders
) -> None:
    orders.fill(3)
    orders.add((7, None, 1.0, LATER))
    orders.run(spark, "bootstrap", "b")
    assert orders.run(spark, "drop", "d").status == "succeeded"
    assert not orders.timeline.exists
    assert not Timeline(orders.table.error_uri).exists
    assert orders.run(spark, "drop", "d2").status == "nothing_to_do"
    assert orders.run(spark, "bootstrap", "b2").counts.applied == 3


def test_a_new_column_is_added_and_a_column_that_is_gone_keeps_its_values(spark: SparkSession, orders: Orders) -> None:
    orders.fill(2, days=1)
    orders.run(spark, "bootstrap", "b")
    orders.sql("alter table orders rename column amount to price")
    orders.sql("update orders set price = 5.0, updated_at = '2026-11-16 09:00:00' where id = 1")
    report = orders.run(spark, "incremental", "i")
    assert report.schema["added"] == ["price"]
    assert orders.rows(spark, "id", "amount", "price") == [(0, 0.0, None), (1, 1.0, 5.0)]


def test_a_type_that_does_not_fit_is_told_and_values_are_judged_one_by_one(spark: SparkSession, orders: Orders) -> None:
    orders.fill(2, days=1)
    orders.run(spark, "bootstrap", "b")
    orders.sql("alter table orders rename to old")
    orders.sql("create table orders(id integer, day text, amount text, updated_at timestamp)")
    orders.add((0, "2026-11-01", "7.5", LATER), (1, "2026-11-01", "seven", LATER))
    report = orders.run(spark, "incremental", "i")
    assert report.schema["conflicts"] == [["amount", "double", "string"]]
    assert report.counts == RowCounts(read=2, applied=1, errors=1)
    assert orders.rows(spark) == [(0, "2026-11-01", 7.5), (1, "2026-11-01", 1.0)]


def test_a_table_without_partition_and_reference_key_takes_what_is_read_later(
    spark: SparkSession, orders: Orders
) -> None:
    orders.table = replace(orders.table, record_key=("id",), reference_key=None, partition_column=None)
    orders.source = replace(orders.source, cursor_column=None)
    orders.fill(5)
    orders.add((0, "2026-11-09", 100.0, LATER))
    first = orders.run(spark, "bootstrap", "b")
    assert first.counts == RowCounts(read=6, applied=5, superseded=1)
    assert orders.run(spark, "incremental", "i").status == "nothing_to_do"
    orders.sql("update orders set amount = 4.5 where id = 4")
    changed = orders.run(spark, "incremental", "i2")
    assert (changed.counts.applied, changed.written.updates) == (1, 1)
    assert (4, "2026-11-02", 4.5) in orders.rows(spark)


def test_an_empty_source_makes_an_empty_table(spark: SparkSession, orders: Orders) -> None:
    assert orders.run(spark, "bootstrap", "b").status == "succeeded"
    orders.fill(3)
    assert orders.run(spark, "incremental", "i").counts == RowCounts(read=3, applied=3)
    assert orders.rows(spark) == orders.source_rows()


def test_a_checkpoint_is_stamped_again_before_the_archive_takes_it(
    spark: SparkSession, orders: Orders, monkeypatch: object
) -> None:
    orders.fill(40, days=1)
    first = orders.run(spark, "bootstrap", "b")
    for number in range(2):
        orders.run(spark, "delete", f"d{number}", delete=DeleteSpec(keys=((str(number), "2026-11-01"),)))
    kept, hudi.MIN_COMMITS_KEPT = hudi.MIN_COMMITS_KEPT, 4
    try:
        stamped = orders.run(spark, "incremental", "i")
    finally:
        hudi.MIN_COMMITS_KEPT = kept
    assert stamped.status == "succeeded"
    assert stamped.checkpoint == first.checkpoint
    assert stamped.instant != first.instant
