"""How the Global Index goes after the timeline where there is much to follow, and what other writers replace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.index.entries import Entry
from ingestion.index.thrift_client import ThriftIndexClient
from ingestion.spark.global_index import following
from ingestion.spark.global_index.following import NotFollowed, follow
from ingestion.spark.indexes.hbase import client_of
from ingestion.spark.job import DeadlinePassed
from tests.spark.order_shop import Orders
from tests.spark.test_global_index import LATER, LATEST, counted, entries, places


@pytest.fixture
def orders(spark: SparkSession, tmp_path: Path) -> Orders:
    orders = Orders(tmp_path, index="hbase")
    orders.table = replace(orders.table, record_key=("id",))
    orders.fill(30)
    assert orders.run(spark, "bootstrap", "b").error is None
    return orders


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
