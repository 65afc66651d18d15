"""The Global Index through HBase's own client, where no Thrift server is named: what it says, and every way in which a job asks it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import happybase
import pytest
from pyspark.sql import SparkSession

from ingestion.index.client import IndexClient, IndexTableMissing, IndexUnavailable, NotAnIndex
from ingestion.index.entries import FAMILIES, DamagedEntry
from ingestion.spark.contract.guidance import NoGuidance
from ingestion.spark.contract.spec import GlobalIndexSpec
from ingestion.spark.file_groups import batch_keys
from ingestion.spark.global_index.clients import open_client
from ingestion.spark.global_index.hbase_client.administration import open_administration
from ingestion.spark.global_index.job_use import JobUse
from ingestion.spark.indexes.hbase import client_of
from ingestion.spark.loading import small_batches
from tests.conftest import require
from tests.index_client_contract import *  # noqa: F403 (its tests are run here)
from tests.index_client_contract import HERE
from tests.requirements import Service
from tests.spark.order_shop import Orders, global_index_of
from tests.spark.test_global_index import entries, places
from tests.spark.test_index_repairs import NONE, damage, verified

LATER, LATEST = "2026-11-16 09:00:00", "2026-11-16 10:00:00"


def without_thrift(folder: Path) -> GlobalIndexSpec:
    return replace(global_index_of(folder), thrift="")


def make_table(spark: SparkSession, spec: GlobalIndexSpec, families: tuple[bytes, ...] = FAMILIES) -> None:
    with open_administration(spark, {"hbase.zookeeper.quorum": spec.quorum}) as hbase:
        hbase.create(spec.table, "file:///nowhere", families, [b"key 3", b"m"])


@pytest.fixture
def client(spark: SparkSession, tmp_path: Path) -> Iterator[IndexClient]:
    spec = without_thrift(tmp_path)
    make_table(spark, spec)
    client = open_client(spec)
    client.note({})
    yield client
    client.close()


def test_regions_say_where_they_are(client: IndexClient) -> None:
    assert [(region.start, region.end) for region in client.regions()] == [
        (b"", b"key 3"),
        (b"key 3", b"m"),
        (b"m", b""),
    ]
    assert {(bool(region.host), region.port > 0) for region in client.regions()} == {(True, True)}


def test_a_table_that_is_not_there_is_told_and_so_is_one_of_somebody_else(
    spark: SparkSession, client: IndexClient, tmp_path: Path
) -> None:
    missing = open_client(without_thrift(tmp_path / "missing"))
    for ask in (lambda: missing.get(["a"]), lambda: missing.put({"a": HERE}, at_ms=1), missing.regions, missing.state):
        with pytest.raises(IndexTableMissing, match="HBase has no table `lakehub_test_"):
            ask()
    foreign = without_thrift(tmp_path / "foreign")
    make_table(spark, foreign, (b"x",))
    for ask in (lambda: open_client(foreign).get(["a"]), lambda: open_client(foreign).put({"a": HERE}, at_ms=1)):
        with pytest.raises(NotAnIndex, match="somebody else has made it"):
            ask()
    spec = without_thrift(tmp_path)
    address = urlsplit(require(Service.HBASE))
    connection = happybase.Connection(address.hostname, address.port)
    connection.table(spec.table).put(b"foreign", {b"e:x": b"1", b"e:f": b"f"})
    connection.table(spec.table).delete(b"\xff")
    connection.close()
    with pytest.raises(IndexUnavailable, match="not the last, which is always there"):
        client.get(["a"])
    client.note({})
    with pytest.raises(DamagedEntry, match="whose SHA-256 begins with 656771905e1ef731 is no entry"):
        client.get(["foreign"])


def test_a_cluster_that_is_away_is_given_up_when_its_time_is_over(spark: SparkSession, tmp_path: Path) -> None:
    away = replace(without_thrift(tmp_path), quorum="127.0.0.1:9")
    with pytest.raises(
        IndexUnavailable, match=r"at the region servers that 127.0.0.1:9 names: .* goes on when it is back"
    ):
        open_client(away, patience_s=0.0).get(["a"])


def test_a_table_that_another_job_makes_anew_is_waited_for(client: IndexClient, tmp_path: Path) -> None:
    """It is disabled before it is dropped."""
    spec = without_thrift(tmp_path)
    address = urlsplit(require(Service.HBASE))
    connection = happybase.Connection(address.hostname, address.port)
    connection.disable_table(spec.table)
    impatient = open_client(spec, patience_s=0.0)
    for ask in (lambda: impatient.get(["a"]), impatient.state, lambda: impatient.put({"a": HERE}, at_ms=1)):
        with pytest.raises(IndexUnavailable, match="goes on when it is back"):
            ask()
    connection.enable_table(spec.table)
    connection.close()
    assert client.get(["a"]) == {}


def test_servers_that_hbase_does_not_tell_are_not_counted(
    spark: SparkSession, client: IndexClient, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A job that has ended is not failed by that."""
    table = Orders(tmp_path, index="hbase").table
    refused = replace(table, uri=f"{table.uri}_2", global_index=replace(without_thrift(tmp_path), table="no name"))
    use = JobUse(NoGuidance())
    use.watch(client)
    with caplog.at_level("INFO"):
        counts = [use.count_servers(each) for each in (replace(table, global_index=without_thrift(tmp_path)), refused)]
    assert counts == [1, 0]
    assert "are not counted now: HBase refuses what it is asked" in caplog.text


@pytest.mark.parametrize("most_named", [0, batch_keys.MAX_NAMED_KEYS])
def test_whatever_asks_the_index_asks_the_region_servers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_named: int
) -> None:
    """Few keys and many, all entries, and repairs; at the rate that a job may send, and counted."""
    monkeypatch.setattr(batch_keys, "MAX_NAMED_KEYS", most_named)
    orders = Orders(tmp_path, index="hbase")
    spec = replace(without_thrift(tmp_path), requests_per_s=500.0)
    orders.table = replace(orders.table, record_key=("id",), global_index=spec)
    orders.fill(30)
    loaded = orders.run(spark, "bootstrap", "b")
    assert loaded.error is None
    assert loaded.index_use is not None
    assert len(loaded.index_use.servers) == 1
    if not most_named:
        monkeypatch.setattr(small_batches, "MAX_ROWS", 0)
    orders.sql(f"update orders set amount = -1, updated_at = '{LATER}' where id < 10")
    orders.add((30, "2026-11-02", 1.0, LATER))
    report = orders.run(spark, "incremental", "i")
    assert (report.error, report.written.inserts, report.written.updates) == (None, 1, 10)
    assert report.index_use is not None
    assert (report.index_use.reads, report.index_use.seconds > 0) == (11, True)
    assert orders.rows(spark) == orders.source_rows()
    damage(orders)
    output = verified(spark, orders, "r", repairs=True)
    assert output["repaired"] == {"missing": 2, "misplaced": 2, "without_row": 1}
    assert (output["problems"], output["rows"], output["entries"]) == (NONE, 31, 31)
    assert entries(spark, orders) == places(spark, orders)
    assert [*(tmp_path / "staging").iterdir()] == []
    client_of(orders.table).close()
