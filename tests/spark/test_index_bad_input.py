"""What may go wrong with a Global Index is refused with the reason, or made right: no key is there twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import happybase
import pytest
from pyspark.sql import SparkSession

from ingestion.index.client import IndexUnavailable
from ingestion.index.entries import FAMILIES
from ingestion.spark.contract.spec import GlobalIndexSpec
from ingestion.spark.file_groups import batch_keys
from ingestion.spark.global_index import building
from ingestion.spark.global_index.building import LoadedOtherwise
from ingestion.spark.global_index.following import NotFollowed
from ingestion.spark.global_index.hbase_client import staging
from ingestion.spark.global_index.hbase_client.administration import (
    Administration,
    RegionServer,
    open_administration,
)
from ingestion.spark.global_index.hbase_client.jvm import RefusedByHBase
from ingestion.spark.indexes.hbase import client_of
from ingestion.spark.loading import small_batches
from ingestion.spark.session import jvm
from lakehub.kernel import failpoint
from tests.polling import scaled
from tests.spark.order_shop import Orders
from tests.spark.test_global_index import LATER, LATEST, entries, places

LONG = "ü" * 15_000
"""30,000 bytes, the most that a record key has."""
TEXTS = ("plain", LONG, LONG[1:] + "x", "a\0b", "\0", "a,b:c", "id:1,day:2", "für 日本", "\x7f", "__null__", "%41", " ")


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    orders = Orders(tmp_path, index="hbase")
    orders.table = replace(orders.table, record_key=("id",))
    return orders


def index_of(orders: Orders) -> GlobalIndexSpec:
    assert orders.table.global_index is not None
    return orders.table.global_index


@contextmanager
def thrift(orders: Orders) -> Iterator[Any]:
    address = urlsplit(f"//{index_of(orders).thrift}")
    connection = happybase.Connection(address.hostname, address.port)
    yield connection
    connection.close()


def has_index_table(orders: Orders) -> bool:
    with thrift(orders) as connection:
        return index_of(orders).table.encode() in connection.tables()


@pytest.mark.parametrize(
    ("types", "keys", "most_direct"),
    [
        (("text",), TEXTS, small_batches.MAX_ROWS),
        (("text",), TEXTS, 0),
        (("integer",), (-(2**63), -1, 0, 2**63 - 1), 0),
        (
            ("numeric(20, 0)", "real", "date"),
            ((-(10**18), -1.5, "1969-12-31"), (0, 0.1, "2026-11-16"), (9 * 10**18, 1e300, "2026-11-16")),
            0,
        ),
        (
            ("numeric(10, 2)", "timestamp"),
            ((-1.5, "1969-12-31 23:59:59.999999"), (0, "2026-11-16 08:00:00"), (0.1, "2026-11-16 08:00:00")),
            small_batches.MAX_ROWS,
        ),
    ],
)
def test_a_key_of_each_type_is_there_once(
    spark: SparkSession,
    orders: Orders,
    monkeypatch: pytest.MonkeyPatch,
    types: tuple[str, ...],
    keys: tuple[Any, ...],
    most_direct: int,
) -> None:
    """It is found where it was loaded, and where it was inserted since; one that moves is moved. `most_direct`: rows for which no Spark job is run."""
    monkeypatch.setattr(small_batches, "MAX_ROWS", most_direct)
    monkeypatch.setattr(batch_keys, "MAX_NAMED_KEYS", batch_keys.MAX_NAMED_KEYS if most_direct else 0)
    names = ("id", "part", "place")[: len(types)]
    columns = ", ".join(f"{name} {type_}" for name, type_ in zip(names, types, strict=True))
    orders.table = replace(orders.table, record_key=names)
    orders.sql("drop table orders")
    orders.sql(f"create table orders({columns}, day text, amount real, updated_at timestamp)")
    first, *others = (key if len(types) > 1 else (key,) for key in keys)
    orders.add(*((*key, "2026-11-01", 1.0, "2026-11-16 08:00:00") for key in others))
    assert orders.run(spark, "bootstrap", "b").error is None
    orders.sql(f"update orders set day = '2026-11-02', updated_at = '{LATER}'")
    orders.add((*first, "2026-11-01", 1.0, LATER))
    report = orders.run(spark, "incremental", "i")
    assert (report.error, report.written.inserts) == (None, len(keys))
    orders.sql(f"update orders set amount = 2, updated_at = '{LATEST}'")
    report = orders.run(spark, "incremental", "j")
    assert (report.error, report.written.inserts, report.written.updates) == (None, 0, len(keys))
    assert len(orders.rows(spark)) == len(keys)
    assert entries(spark, orders) == places(spark, orders)


def test_a_key_without_a_byte_is_rejected_and_so_is_one_of_40_000(spark: SparkSession, orders: Orders) -> None:
    """With a load and with a batch, and no other row."""
    orders.sql("drop table orders")
    orders.sql("create table orders(id text, day text, amount real, updated_at timestamp)")
    for run, kind, at in (("b", "bootstrap", LATER), ("i", "incremental", LATEST)):
        orders.add(*((key, "2026-11-01", 1.0, at) for key in ("", "ü" * 20_000, f"key {run}")))
        report = orders.run(spark, kind, run)
        assert (report.error, report.counts.applied, report.counts.errors) == (None, 1, 2)
    assert orders.rows(spark, "id") == [("key b",), ("key i",)]
    assert entries(spark, orders) == places(spark, orders)


def test_a_table_of_somebody_else_is_left_as_it_is(spark: SparkSession, orders: Orders) -> None:
    """Whoever loads, looks up, rebuilds or removes is told so."""
    orders.fill(10)
    with thrift(orders) as connection:
        connection.create_table(index_of(orders).table, {"theirs": {}})
        table = connection.table(index_of(orders).table)
        table.put(b"row", {b"theirs:x": b"1"})
    report = orders.run(spark, "bootstrap", "b")
    assert "ForeignTable: HBase has a table" in (report.error or "")
    assert "Lakehub has not made it: it is left as it is" in (report.error or "")
    orders.change(3, -1.0, LATER)
    assert "ForeignTable" in (orders.run(spark, "rebuild_index", "r", source=None).error or "")
    assert "ForeignTable" in (orders.run(spark, "drop_index", "d", source=None).error or "")
    looked_up = orders.run(spark, "incremental", "i")
    assert "NotAnIndex: HBase has a table `" in (looked_up.error or "")
    with thrift(orders) as connection:
        assert connection.table(index_of(orders).table).row(b"row") == {b"theirs:x": b"1"}
        connection.delete_table(index_of(orders).table, disable=True)
    assert orders.run(spark, "incremental", "j").written.updates == 1
    assert entries(spark, orders) == places(spark, orders)


def test_the_table_of_another_table_of_the_lake_is_left_as_it_is(
    spark: SparkSession, orders: Orders, tmp_path: Path
) -> None:
    """Two installations that share an HBase may give their tables the same name."""
    orders.fill(10)
    assert orders.run(spark, "bootstrap", "b").error is None
    others = Orders(tmp_path / "other", index="hbase")
    others.table = replace(others.table, record_key=("id",), global_index=orders.table.global_index)
    others.fill(20)
    assert f"it is that of {orders.table.uri}" in (others.run(spark, "bootstrap", "o").error or "")
    assert entries(spark, orders) == places(spark, orders)


def test_the_entries_go_with_the_dataset(spark: SparkSession, orders: Orders) -> None:
    """Also those of an index that is not used any more; a second time there is nothing to do."""
    orders.fill(10)
    assert orders.run(spark, "bootstrap", "b").error is None
    assert has_index_table(orders)
    orders.table = replace(orders.table, index="simple")
    for number in range(2):
        assert orders.run(spark, "drop_index", f"d{number}", source=None).error is None
        assert not has_index_table(orders)
    orders.table = replace(orders.table, index="hbase")
    orders.change(3, -1.0, LATER)
    assert orders.run(spark, "incremental", "i").written.updates == 1
    assert has_index_table(orders)
    assert orders.run(spark, "drop", "x", source=None).error is None
    assert not has_index_table(orders)


def test_hfiles_that_do_not_fit_the_regions_any_more_are_made_anew(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has split or merged regions since the table was made for them."""
    monkeypatch.setattr(building, "ENTRIES_A_FILE", 40)
    orders.fill(120)
    index = index_of(orders)

    def change_regions(name: str) -> None:
        if name == "index.before_load":
            settings = {"hbase.zookeeper.quorum": index.quorum, "zookeeper.znode.parent": index.znode}
            with open_administration(spark, settings) as hbase:
                hbase.create(index.table, orders.table.uri, FAMILIES, [b"1", b"2", b"33", b"9"])

    with monkeypatch.context() as changed:
        changed.setattr(failpoint, "reach", change_regions)
        error = orders.run(spark, "bootstrap", "b").error or ""
    assert "RegionsChanged: Somebody has split or merged the regions" in error
    orders.change(3, -1.0, LATER)
    assert orders.run(spark, "incremental", "i").written.updates == 1
    assert entries(spark, orders) == places(spark, orders)


def test_what_a_lost_executor_has_left_beside_the_hfiles_is_not_loaded(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what HBase has loaded otherwise than it was made is no index."""
    orders.fill(30)
    assert orders.run(spark, "bootstrap", "b").error is None
    index, staged = index_of(orders), Path(index_of(orders).staging_uri.removeprefix("file://"))

    def leave_a_file(name: str) -> None:
        if name == "index.after_reading":
            (made,) = staged.glob("*/e/*")
            made.with_name("0" * 32).write_bytes(made.read_bytes())

    monkeypatch.setattr(failpoint, "reach", leave_a_file)
    built = building.build(spark, orders.table, index, client_of(orders.table))
    assert (built.files, built.loaded, built.regions) == (1, 1, 1)
    assert entries(spark, orders) == places(spark, orders)
    monkeypatch.setattr(building, "_remove_others", lambda *_: None)
    with pytest.raises(
        LoadedOtherwise, match=r"Of 1 HFiles for as many regions HBase has loaded 2, and .* has 1 regions"
    ):
        building.build(spark, orders.table, index, client_of(orders.table))
    with pytest.raises(NotFollowed):
        entries(spark, orders)


def test_keys_that_are_large_make_more_files_and_not_larger_ones(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many small ones there are beside them."""
    most = 300_000
    monkeypatch.setattr(building, "BYTES_A_FILE", most)
    orders.sql("drop table orders")
    orders.sql("create table orders(id text, day text, amount real, updated_at timestamp)")
    keys = [f"{LONG[6:]}{number:06}" for number in range(40)] + [f"key {number}" for number in range(400)]
    orders.add(*((key, "2026-11-01", 1.0, LATER) for key in keys))
    staged, sizes = Path(index_of(orders).staging_uri.removeprefix("file://")), list[int]()

    def look(name: str) -> None:
        if name == "index.before_load":
            sizes.extend(file.stat().st_size for file in staged.glob("*/e/*"))

    monkeypatch.setattr(failpoint, "reach", look)
    assert orders.run(spark, "bootstrap", "b").error is None
    assert sum(sizes) > 40 * 29_000
    assert max(sizes) < 2 * most, sizes
    assert len(sizes) == len(client_of(orders.table).regions()) == 1 + 5
    assert entries(spark, orders) == places(spark, orders)


def test_hfiles_are_staged_nowhere_but_where_hbase_takes_them_from(
    spark: SparkSession, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written there, and the index that stood goes on."""
    orders.fill(10)
    assert orders.run(spark, "bootstrap", "b").error is None
    index = index_of(orders)
    settings = {"hbase.zookeeper.quorum": index.quorum, "zookeeper.znode.parent": index.znode}
    with open_administration(spark, settings) as hbase:
        servers = hbase.servers()
    assert [server.is_here for server in servers] == [True]
    assert staging.root_uri_of(servers).startswith("file:///")
    orders.table = replace(orders.table, global_index=replace(index, staging_uri="s3a://bucket/hfiles"))
    refused = orders.run(spark, "rebuild_index", "r", source=None).error or ""
    assert "UnfitStaging: HFiles would be staged in s3a://bucket/hfiles, and HBase has its files in file:///" in refused
    orders.table = replace(orders.table, global_index=index)
    elsewhere = [RegionServer("192.0.2.7", 16020, -1, is_here=False)]
    monkeypatch.setattr(Administration, "servers", lambda self: elsewhere)
    refused = orders.run(spark, "rebuild_index", "s", source=None).error or ""
    assert "the region server 192.0.2.7:16020 is on another one and does not read it" in refused
    assert not [*Path(index.staging_uri.removeprefix("file://")).glob("*")]
    orders.change(3, -1.0, LATER)
    assert orders.run(spark, "incremental", "i").written.updates == 1
    assert entries(spark, orders) == places(spark, orders)


def test_what_hbase_refuses_is_told_in_its_words_and_is_no_outage(
    spark: SparkSession, orders: Orders, tmp_path: Path
) -> None:
    """And Spark's own thread has the class loader that it had."""
    index = index_of(orders)
    thread: Any = jvm(spark).java.lang.Thread.currentThread()
    loader = thread.getContextClassLoader()
    settings = {"hbase.zookeeper.quorum": index.quorum, "zookeeper.znode.parent": index.znode}
    with open_administration(spark, settings) as hbase:
        hbase.create(index.table, orders.table.uri, FAMILIES, [])
        assert thread.getContextClassLoader().equals(loader)
        with pytest.raises(RefusedByHBase, match="FileNotFoundException"):
            hbase.load(index.table, (tmp_path / "nowhere").as_uri())
        assert thread.getContextClassLoader().equals(loader)
        with pytest.raises(RefusedByHBase, match=r"refuses what it is asked: .*NamespaceNotFoundException: nowhere"):
            hbase.create("nowhere:orders", orders.table.uri, FAMILIES, [])
        hbase.drop(index.table, orders.table.uri)
    assert thread.getContextClassLoader().equals(loader)


def test_a_cluster_that_is_away_is_given_up_soon(spark: SparkSession) -> None:
    """By HBase's own settings, it would be after 20 minutes."""
    began = time.monotonic()
    settings = {"hbase.zookeeper.quorum": "127.0.0.1:1", "zookeeper.znode.parent": "/hbase"}
    with (
        pytest.raises(IndexUnavailable, match="What waits goes on when it is back"),
        open_administration(spark, settings) as hbase,
    ):
        hbase.check_owner("orders", "file:///lake/orders")
    assert time.monotonic() - began < scaled(120)
