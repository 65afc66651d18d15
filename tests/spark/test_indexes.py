"""Every index decides between insert and update rightly: each key once, wherever it lived."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.spark.contract.spec import DeleteSpec
from ingestion.spark.file_groups import BaseFile
from ingestion.spark.file_groups.batch_keys import MAX_NAMED_KEYS, BatchKeys
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.indexes.memory import _KEY_MAPS
from ingestion.spark.loading import committing, small_batches
from ingestion.spark.tables.hudi import read_table
from tests.spark.order_shop import Orders

LATER = "2026-11-16 09:00:00"


@pytest.fixture(params=[0, small_batches.MAX_ROWS], ids=["by Spark", "directly"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How small batches are judged and written."""
    monkeypatch.setattr(small_batches, "MAX_ROWS", request.param)


@pytest.fixture(params=list(INDEXES))
def indexed(request: pytest.FixtureRequest, tmp_path: Path, way: None) -> Orders:
    return Orders(tmp_path, index=request.param)


def test_updates_and_inserts_in_one_batch(spark: SparkSession, indexed: Orders) -> None:
    indexed.fill(40)
    indexed.run(spark, "bootstrap", "b")
    indexed.sql(f"update orders set amount = -1, updated_at = '{LATER}' where id % 2 = 0")
    indexed.add(*((number, f"2026-11-{number % 4 + 1:02}", 1.0, LATER) for number in range(100, 120)))
    report = indexed.run(spark, "incremental", "i")
    assert report.error is None
    assert (report.written.inserts, report.written.updates) == (20, 20)
    assert indexed.rows(spark) == indexed.source_rows()


def test_a_key_that_moves_to_another_partition_lives_there_alone(spark: SparkSession, indexed: Orders) -> None:
    indexed.table = replace(indexed.table, record_key=("id",))
    indexed.fill(10)
    indexed.run(spark, "bootstrap", "b")
    indexed.sql(f"update orders set day = '2026-11-09', updated_at = '{LATER}' where id = 4")
    report = indexed.run(spark, "incremental", "i")
    assert report.counts.applied == 1
    assert indexed.rows(spark) == indexed.source_rows()


def test_some_keys_of_a_batch_move_and_others_stay(spark: SparkSession, indexed: Orders) -> None:
    indexed.table = replace(indexed.table, record_key=("id",))
    indexed.fill(10)
    indexed.run(spark, "bootstrap", "b")
    indexed.sql(f"update orders set amount = -1, updated_at = '{LATER}'")
    indexed.sql("update orders set day = '2026-11-09' where id in (4, 5)")
    indexed.add((10, "2026-11-09", 1.0, LATER))
    assert indexed.run(spark, "incremental", "i").counts.applied == 11
    assert indexed.rows(spark) == indexed.source_rows()
    indexed.sql("update orders set amount = -2, updated_at = '2026-11-16 10:00:00' where id in (4, 7, 10)")
    report = indexed.run(spark, "incremental", "j")
    assert (report.written.inserts, report.written.updates) == (0, 3)
    assert indexed.rows(spark) == indexed.source_rows()


def test_a_key_with_an_empty_text_is_there_once_when_another_key_moves(spark: SparkSession, indexed: Orders) -> None:
    """Hudi has a word of its own for the empty text, by which it looks the key up."""
    indexed.sql("drop table orders")
    indexed.sql("create table orders(id integer, note text, day text, amount real, updated_at timestamp)")
    indexed.table = replace(indexed.table, record_key=("id", "note"))
    indexed.add((1, "a", "2026-11-01", 1.0, "2026-11-16 08:00:00"))
    indexed.run(spark, "bootstrap", "b")
    indexed.add((2, "", "2026-11-01", 1.0, LATER))
    assert indexed.run(spark, "incremental", "i").written.inserts == 1
    indexed.sql("update orders set amount = 2, updated_at = '2026-11-16 10:00:00'")
    indexed.sql("update orders set day = '2026-11-09' where id = 1")
    assert indexed.run(spark, "incremental", "j").error is None
    assert indexed.rows(spark) == indexed.source_rows()


def test_a_key_with_a_nul_in_it_is_there_once_when_it_moves(spark: SparkSession, indexed: Orders) -> None:
    """Which separates the keys of a question."""
    indexed.sql("drop table orders")
    indexed.sql("create table orders(id text, day text, amount real, updated_at timestamp)")
    indexed.table = replace(indexed.table, record_key=("id",))
    indexed.add(("a\0b", "2026-11-01", 1.0, "2026-11-16 08:00:00"), ("c", "2026-11-02", 1.0, "2026-11-16 08:00:00"))
    indexed.run(spark, "bootstrap", "b")
    indexed.sql(f"update orders set day = '2026-11-09', updated_at = '{LATER}' where id <> 'c'")
    report = indexed.run(spark, "incremental", "i")
    assert (report.error, report.counts.applied) == (None, 1)
    assert indexed.rows(spark) == indexed.source_rows()


def test_a_key_of_every_type_is_found_again(spark: SparkSession, indexed: Orders) -> None:
    indexed.sql("drop table orders")
    indexed.sql("create table orders(id timestamp, day text, due date, amount real, updated_at timestamp)")
    indexed.table = replace(indexed.table, record_key=("id", "day", "due"))
    indexed.add(
        *((f"2026-11-16 08:00:0{n}.000{n}", "2026-11-01", f"2026-12-0{n}", 1.0, "2026-11-16") for n in range(1, 6))
    )
    indexed.run(spark, "bootstrap", "b")
    indexed.sql(f"update orders set amount = 2, updated_at = '{LATER}'")
    report = indexed.run(spark, "incremental", "i")
    assert report.error is None
    assert (report.written.inserts, report.written.updates) == (0, 5)
    assert [row[0] for row in indexed.rows(spark, "amount")] == [2.0] * 5


def test_deletes(spark: SparkSession, indexed: Orders) -> None:
    indexed.fill(10, days=1)
    indexed.run(spark, "bootstrap", "b")
    assert indexed.run(spark, "delete", "d", delete=DeleteSpec(keys=(("3", "2026-11-01"),))).written.deletes == 1
    assert indexed.run(spark, "backfill", "f", partitions=("2026-11-01",)).counts.applied == 1
    assert indexed.rows(spark) == indexed.source_rows()


@pytest.mark.parametrize(("index", "share"), [("simple", 1.0), ("record_index", 0.4), ("memory", 0.4)])
def test_only_the_partitions_that_hold_a_key_are_read(
    spark: SparkSession, tmp_path: Path, index: str, share: float
) -> None:
    """Where the key does not say the partition; of ten partitions with a file or two."""
    orders = Orders(tmp_path, index=index)
    orders.table = replace(orders.table, record_key=("id",))
    orders.fill(100, days=10)
    orders.run(spark, "bootstrap", "b")
    chosen: Index = INDEXES.get(index)()
    keys = spark.createDataFrame([(17,), (24,), (999,)], "id bigint")
    files = len(list(tmp_path.glob("lake/orders/day=*/*.parquet")))
    stored = chosen.stored_rows(spark, orders.table, BatchKeys(keys, 3, {"2026-11-01"}, orders.table))
    assert {17, 24} <= {row["id"] for row in stored.collect()}
    assert _files_read(stored) <= share * files


@pytest.mark.parametrize("index", ["record_index", "memory"])
def test_the_files_that_hold_the_keys_are_named_whatever_writer_wrote_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    """By Spark, directly, and in a partition that was loaded anew; a key that is gone or never was there needs none."""
    orders = Orders(tmp_path, index=index)
    orders.table = replace(orders.table, record_key=("id",))
    orders.fill(30, days=10)
    orders.run(spark, "bootstrap", "b")
    assert _places(spark, orders, "17", "999") == _stored_places(spark, orders, 17)
    orders.sql(f"update orders set day = '2026-11-20', updated_at = '{LATER}' where id in (17, 18)")
    orders.run(spark, "incremental", "i")
    assert _places(spark, orders, "18", "19") == _stored_places(spark, orders, 18, 19)
    monkeypatch.setattr(small_batches, "MAX_ROWS", 0)
    orders.add((31, "2026-11-21", 1.0, "2026-11-16 10:00:00"))
    orders.run(spark, "incremental", "j")
    assert _places(spark, orders, "31", "4") == _stored_places(spark, orders, 31, 4)
    assert orders.run(spark, "delete", "d", delete=DeleteSpec(keys=(("31",),))).error is None
    assert orders.run(spark, "bootstrap", "again", replace=True).error is None
    assert _places(spark, orders, "31", "4", "17") == _stored_places(spark, orders, 31, 4, 17)


def _places(spark: SparkSession, orders: Orders, *keys: str) -> set[str]:
    """The files that an index names for keys, by the paths of its table."""
    index: Index = INDEXES.get(orders.table.index)()
    files = index.base_files(spark, orders.table, keys, set())
    assert files is not None
    assert all(isinstance(file, BaseFile) and file.size for file in files)
    return {file.path for file in files}


def _stored_places(spark: SparkSession, orders: Orders, *ids: int) -> set[str]:
    rows = read_table(spark, orders.table).where(f"id in ({', '.join(map(str, ids))})").collect()
    assert len(rows) == len(ids)
    return {f"{row['_hoodie_partition_path']}/{row['_hoodie_file_name']}" for row in rows}


@pytest.mark.parametrize("key", [("id",), ("id", "name"), ("name",), ("big",), ("big", "id")])
def test_keys_are_named_as_the_table_has_them(spark: SparkSession, orders: Orders, key: tuple[str, ...]) -> None:
    names = ("plain", "with space", "a,b:c", 'it\'s "quoted"', "für 日本", "%41", "a/b", "\t", "__null__", "NULL")
    orders.sql("drop table orders")
    orders.sql("create table orders(id integer, name text, big numeric(20, 0), day text, updated_at timestamp)")
    orders.add(*((number - 5, name, (number - 5) * 10**18, "2026-11-01", LATER) for number, name in enumerate(names)))
    orders.table = replace(orders.table, record_key=key)
    assert orders.run(spark, "bootstrap", "b").error is None
    keys = spark.createDataFrame(orders.rows(spark, *key), ", ".join(f"{name} {_TYPES[name]}" for name in key))
    stored = tuple(row[0] for row in orders.rows(spark, "_hoodie_record_key"))
    assert BatchKeys(keys, 10, None, orders.table).named == tuple(sorted(stored))


_TYPES = {"id": "bigint", "name": "string", "big": "decimal(20,0)"}


@pytest.mark.parametrize(
    ("type_", "value"), [("timestamp", "2026-11-16"), ("double", "1"), ("string", ""), ("decimal(5,2)", "1")]
)
def test_keys_that_may_be_written_otherwise_are_not_named(
    spark: SparkSession, orders: Orders, type_: str, value: str
) -> None:
    keys = spark.sql(f"select cast('{value}' as {type_}) as id, 'x' as day")
    assert BatchKeys(keys, 1, None, orders.table).named is None


def test_so_many_keys_are_not_named(spark: SparkSession, orders: Orders) -> None:
    assert BatchKeys(spark.range(1), MAX_NAMED_KEYS + 1, None, orders.table).named is None


def test_a_table_with_more_keys_than_memory_takes_is_fed_by_spark_and_the_commit_says_so(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Orders(tmp_path, index="memory")
    shop.table = replace(shop.table, record_key=("id",))
    shop.fill(12)
    shop.run(spark, "bootstrap", "b")
    with monkeypatch.context() as small:
        small.setattr(_KEY_MAPS, "most", 11)
        shop.sql(f"update orders set amount = -1, updated_at = '{LATER}' where id % 2 = 0")
        report = shop.run(spark, "incremental", "i")
        assert (report.error, report.written.inserts, report.written.updates) == (None, 0, 6)
        assert "more than 11 keys" in shop.timeline.commits()[-1].run["index_limitation"]
    assert shop.run(spark, "rebuild_index", "r", source=None).error is None
    shop.change(3, -5.0, "2026-11-16 10:00:00")
    assert shop.run(spark, "incremental", "j").written.updates == 1
    assert shop.timeline.commits()[-1].run["index_limitation"] == ""
    assert shop.rows(spark) == shop.source_rows()


def _files_read(frame: Any) -> int:
    """By the metrics of the plan that has run."""
    plan, files = [frame._jdf.queryExecution().executedPlan()], 0
    while plan:
        node = plan.pop()
        plan += [node.children().apply(place) for place in range(node.children().size())]
        metric = node.metrics().get("numFiles")
        files += metric.get().value() if metric.isDefined() else 0
    assert files
    return files


def test_a_loaded_table_takes_another_index_with_its_next_commit_and_goes_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The commit builds the record index, or removes the metadata table: a stale one would be read."""
    shop = Orders(tmp_path, index="simple")
    shop.fill(12)
    shop.run(spark, "bootstrap", "b")
    for index, at in (("record_index", "09:00"), ("simple", "10:00"), ("record_index", "11:00")):
        shop.table = replace(shop.table, index=index)
        shop.sql(
            f"update orders set amount = amount - 1, updated_at = '2026-11-16 {at}:00' where id in (0, 2, 4, 6, 8, 10)"
        )
        shop.add((int(at[:2]) + 100, "2026-11-01", 1.0, f"2026-11-16 {at}:00"))
        report = shop.run(spark, "incremental", index + at[:2])
        assert report.error is None
        assert (report.written.inserts, report.written.updates) == (1, 6)
        assert shop.rows(spark) == shop.source_rows()
        assert sorted(map(tuple, read_table(spark, shop.table).select("id", "day", "amount").collect()), key=str) == (
            shop.source_rows()
        )
        assert (tmp_path / "lake/orders/.hoodie/metadata/record_index").exists() == (index == "record_index")
        assert (tmp_path / "lake/orders/.hoodie/metadata").exists() == (index == "record_index")
    removed = shop.run(spark, "delete", "d", delete=DeleteSpec(keys=(("3", "2026-11-01"),)))
    assert (removed.error, removed.written.deletes) == (None, 1)


@pytest.mark.parametrize(
    ("index", "key", "named"),
    [
        ("record_index", ("id", "at"), "(`id` long, `at` date)"),
        ("memory", ("at",), "(`at` date)"),
        ("memory", ("id",), ""),
        ("simple", ("id", "at"), ""),
        ("record_index", ("at", "day"), ""),
    ],
)
def test_a_commit_says_where_no_index_can_be_asked(
    orders: Orders, index: str, key: tuple[str, ...], named: str
) -> None:
    """Not where the key says the partition: then only the batch's partitions are read."""
    table = replace(orders.table, index=index, record_key=key)
    types = {"id": "long", "at": "date", "day": "string"}
    target = Schema(tuple(SchemaColumn(name, type_) for name, type_ in types.items()))
    limitation = committing.keys_not_asked_for(table, target)
    assert named in limitation
    assert bool(limitation) == bool(named)
