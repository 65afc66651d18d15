"""How the Global Index goes after the timeline where there is much to follow, and what other writers replace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ingestion.index.client import IndexClient, IndexTableMissing
from ingestion.index.entries import Entry
from ingestion.index.thrift_client import ThriftIndexClient
from ingestion.spark.contract.spec import ClusterSpec, DeleteSpec
from ingestion.spark.execute import execute
from ingestion.spark.global_index import following
from ingestion.spark.global_index.building import drop
from ingestion.spark.global_index.following import NotFollowed, follow
from ingestion.spark.indexes.hbase import client_of
from ingestion.spark.job import DeadlinePassed
from lakehub.kernel import failpoint
from tests.polling import scaled
from tests.spark.order_shop import Orders, loaded_by_id
from tests.spark.test_append_only import append_only, loaded
from tests.spark.test_global_index import (
    LATER,
    LATEST,
    called,
    counted,
    entries,
    places,
    rows_of_table,
    save_as_another,
)


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path) -> Orders:
    return loaded_by_id(spark, tmp_path, "hbase")


def insert(spark: SparkSession, orders: Orders, run: str, keys: range, at: str) -> None:
    orders.add(*((key, "2026-11-02", 1.0, at) for key in keys))
    assert orders.run(spark, "incremental", run).written.inserts == len(keys)


def test_a_job_that_comes_to_its_deadline_leaves_the_next_one_less_to_follow(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By jobs of another index, which follow nothing."""
    table, by_simple = orders.table, replace(orders.table, index="simple")
    orders.table = by_simple
    insert(spark, orders, "i", range(100, 110), LATER)
    insert(spark, orders, "j", range(200, 207), LATEST)
    orders.table = table
    put, last = ThriftIndexClient.put, orders.timeline.commits()[-1].instant

    def put_until_the_deadline(client: ThriftIndexClient, entries: Mapping[str, Entry], *, at_ms: int) -> None:
        if any(entry.instant == last for entry in entries.values()):
            raise DeadlinePassed("the job has no time left")
        put(client, entries, at_ms=at_ms)

    with monkeypatch.context() as late:
        late.setattr(ThriftIndexClient, "put", put_until_the_deadline)
        with pytest.raises(DeadlinePassed):
            follow(spark, orders.table, client_of(orders.table))
    assert counted(orders) == (0, 10)
    assert entries(spark, orders) == places(spark, orders)
    assert counted(orders)[1] == 17
    assert not [name for name in client_of(orders.table).state() if name.startswith("begun:")]


def test_what_would_take_too_long_at_the_rate_is_built_by_files(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inserts are counted, and without a rate anything is followed."""
    monkeypatch.setattr(following, "FOLLOWS_WITHIN_S", 0.5)
    insert(spark, orders, "i", range(100, 111), LATER)
    client, index = client_of(orders.table), orders.table.global_index
    assert index is not None
    before = client.state()
    slow = replace(orders.table, global_index=replace(index, requests_per_s=20.0))
    with pytest.raises(NotFollowed, match=r"takes 11 requests, at 20\.0 a second more than"):
        follow(spark, slow, client)
    assert (client.state(), client.writes) == (before, 0)
    orders.change(3, -1.0, LATEST)
    report = orders.run(spark, "incremental", "j", table=slow)
    assert (report.error, report.written.updates) == (None, 1)
    assert client.state()["built"] != before["built"]
    insert(spark, orders, "k", range(200, 211), "2026-11-16 11:00:00")
    assert entries(spark, orders) == places(spark, orders)
    assert client_of(orders.table).writes == 11


def test_what_would_take_longer_than_building_is_built_by_files(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By how many entries the index has by now: 30 from its building, and those that came since. Rows that clustering moves are not new."""
    monkeypatch.setattr(following, "FOLLOWS_AT_LEAST_S", 0.0)
    monkeypatch.setattr(following, "BUILDS_ENTRIES_PER_S", 100)
    insert(spark, orders, "i", range(100, 107), LATER)
    client, index = client_of(orders.table), orders.table.global_index
    assert index is not None
    slow = replace(orders.table, global_index=replace(index, requests_per_s=20.0))
    with pytest.raises(NotFollowed, match=r"takes 7 requests, at 20\.0 a second more than 0 s"):
        follow(spark, slow, client)
    _put_together(spark, orders, "c")
    follow(spark, orders.table, client)
    assert _entries_noted(client) == 30 + 7
    insert(spark, orders, "j", range(200, 207), LATEST)
    follow(spark, slow, client)
    assert _entries_noted(client) == 37 + 7
    _put_together(spark, orders, "d")
    before = client.writes
    report = orders.run(spark, "delete", "e", delete=DeleteSpec(keys=(("5",),)), table=slow)
    assert (report.error, report.written.deletes, client.writes) == (None, 1, before)
    assert 0 < report.phases["index"] <= report.phases["total"]
    assert _entries_noted(client) == 44
    assert entries(spark, orders) == places(spark, orders)


def _put_together(spark: SparkSession, orders: Orders, run: str) -> None:
    assert orders.run(spark, "cluster", run, cluster=ClusterSpec(quiet_s=0.0), source=None).status == "succeeded"


def _entries_noted(client: IndexClient) -> int:
    (count,) = (int(value) for name, value in client.state().items() if name.startswith("entries:"))
    return count


def test_an_index_that_was_lost_is_built_while_others_write_and_by_who_looks_keys_up_only(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert orders.table.global_index is not None
    drop(spark, orders.table, orders.table.global_index)
    assert orders.run(spark, "incremental", "nothing").status == "nothing_to_do"
    assert orders.run(spark, "cluster", "c", cluster=ClusterSpec(quiet_s=0.0), source=None).error is None
    with pytest.raises(IndexTableMissing):
        client_of(orders.table).state()
    deleted: list[object] = []

    def delete_a_row(step: str) -> None:
        if step == "index.after_reading" and not deleted:
            by_simple = replace(orders.table, index="simple")
            keys = DeleteSpec(keys=(("5",),))
            report = orders.run(spark, "delete", "d", table=by_simple, delete=keys, lock_wait_s=scaled(2.0))
            deleted.append(report.error or report.written.deletes)

    monkeypatch.setattr(failpoint, "reach", delete_a_row)
    orders.change(3, -1.0, LATER)
    report = orders.run(spark, "incremental", "i")
    assert (report.error, report.written.updates, deleted) == (None, 1, [1])
    assert orders.rows(spark) == [row for row in orders.source_rows() if row[0] != 5]
    assert entries(spark, orders) == places(spark, orders)


class WatchedLease:
    """`writes`: what the index had been told when the job asked to write."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.writes: list[int] = []

    def try_acquire(self) -> bool:
        self.writes.append(client_of(self.orders.table).writes)
        return True

    def release(self) -> None:
        """Nobody else wants it."""


def test_a_row_of_an_append_only_table_that_comes_late_has_all_followed_before_others_wait(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = loaded(spark, append_only(tmp_path, "hbase"))
    insert(spark, log, "i", range(20, 40), LATER)
    assert counted(log)[1] == 0
    log.add((50, "2026-11-02", 1.0, "2026-11-16 08:59:30"))
    lease = WatchedLease(log)
    report = execute(log.spec("incremental", "late"), spark=spark, secrets=log.secrets, lease=lease)
    assert (report.error, report.written.inserts) == (None, 1)
    assert lease.writes == [1 + 20]
    assert log.rows(spark) == log.source_rows()
    assert entries(spark, log) == places(spark, log)


@pytest.mark.parametrize("how", ["insert_overwrite", "delete_partition"])
def test_keys_that_another_writer_has_replaced_by_nothing_have_no_entry(
    spark: SparkSession, orders: Orders, how: str
) -> None:
    """Of nine keys of a day two stay, or none does. What was never committed beside their file is not read."""
    deleted = DeleteSpec(keys=(("3",),))
    assert orders.run(spark, "delete", "d", delete=deleted).error is None  # so the file has two versions
    assert len(entries(spark, orders)) == 29
    day = orders.folder / "lake/orders/day=2026-11-01"
    file_id = next(day.glob("*.parquet")).name.partition("_")[0]
    rows = rows_of_table(spark, orders).where("day = '2026-11-01' and id < 7")
    if how == "insert_overwrite":
        save_as_another(rows, orders, how)
    else:
        save_as_another(rows, orders, how, partitions_to_delete="day=2026-11-01")
    (day / f"{file_id}_0-0-0_99991231235959999.parquet").write_bytes(b"never committed")
    assert len(places(spark, orders)) == (22 if how == "insert_overwrite" else 20)
    reads = counted(orders)[0]
    follow(spark, orders.table, client_of(orders.table))
    assert counted(orders)[0] - reads == 9
    assert entries(spark, orders) == places(spark, orders)
    orders.sql(f"update orders set amount = -1, updated_at = '{LATER}' where day = '2026-11-01'")
    orders.sql("delete from orders where id = 3")
    report = orders.run(spark, "incremental", "i")
    assert (report.error, report.written.inserts) == (None, 7 if how == "insert_overwrite" else 9)
    assert orders.rows(spark) == orders.source_rows()


def test_files_that_are_put_together_are_followed_without_a_question(spark: SparkSession, orders: Orders) -> None:
    """And what was replaced and is cleaned away by now does no harm."""
    insert(spark, orders, "i", range(100, 110), LATER)
    assert entries(spark, orders) == places(spark, orders)
    reads = counted(orders)[0]
    clustered = orders.run(spark, "cluster", "c", cluster=ClusterSpec(quiet_s=0.0), source=None)
    assert clustered.error is None
    assert orders.timeline.commits()[-1].operation == "CLUSTER"
    before = places(spark, orders)
    follow(spark, orders.table, client_of(orders.table))
    assert counted(orders)[0] == reads
    assert entries(spark, orders) == before
    day = orders.folder / "lake/orders/day=2026-11-01"
    old = [*day.glob("*.parquet")]
    rows = rows_of_table(spark, orders).where("day = '2026-11-01' and id < 4")
    save_as_another(rows, orders, "insert_overwrite")
    for file in old:
        file.unlink()
    gone = {key: place for key, place in before.items() if place[0] == "day=2026-11-01"}
    assert entries(spark, orders) == gone | places(spark, orders)


def test_a_key_that_another_writer_had_doubled_is_there_once_when_that_was_rolled_back(
    spark: SparkSession, orders: Orders
) -> None:
    """Its entry is that of a commit that is gone, and says nothing of the row that was there before: the table is asked."""
    doubled = rows_of_table(spark, orders).where("id = 7").withColumn("day", F.lit("2026-11-20"))
    save_as_another(doubled, orders, "insert")
    assert entries(spark, orders)["7"][0] == "day=2026-11-20"
    newest = orders.timeline.commits()[-1].instant
    called(spark, orders, f"rollback_to_instant(table => 'taken_back', instant_time => '{newest}')")
    orders.change(7, -1.0, LATER)
    report = orders.run(spark, "incremental", "i")
    assert (report.error, report.written.inserts, report.written.updates) == (None, 0, 1)
    assert orders.rows(spark) == orders.source_rows()
    assert entries(spark, orders) == places(spark, orders)
