"""Every index says where it is wrong, by what damage is done to it and to the table, and is made anew from the base files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.spec import DeleteSpec
from ingestion.spark.file_groups.index_check import MAX_EXAMPLES, IndexProblem
from ingestion.spark.file_groups.lookups import file_groups_of_keys
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.indexes.memory import _KEY_MAPS
from ingestion.spark.tables import hudi
from tests.spark.order_shop import Orders, loaded_by_id

KEEPING = ("record_index", "memory", "hbase")
"""Those that keep something that may be wrong."""


@pytest.fixture(params=list(INDEXES))
def indexed(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Orders:
    return loaded_by_id(spark, tmp_path, request.param, days=5)


def verified(spark: SparkSession, shop: Orders, name: str = "v") -> dict[str, Any]:
    report = shop.run(spark, "verify_index", name, source=None)
    assert report.error is None
    return report.output


def problems(output: dict[str, Any]) -> dict[str, int]:
    return {name: keys for name, keys in output["problems"].items() if keys}


def test_an_index_that_is_right_is_said_to_be_and_nothing_is_changed(spark: SparkSession, indexed: Orders) -> None:
    indexed.change(3, -1.0, "2026-11-16 09:00:00")
    indexed.sql("update orders set day = '2026-11-09', updated_at = '2026-11-16 09:00:00' where id = 4")
    assert indexed.run(spark, "incremental", "i").error is None
    before = _files(indexed)
    output = verified(spark, indexed)
    assert problems(output) == {}
    assert (output["rows"], output["entries"]) == (30, 30 if indexed.table.index in KEEPING else None)
    assert _files(indexed) == before


def test_a_key_that_another_writer_has_doubled_is_named_with_its_places(spark: SparkSession, indexed: Orders) -> None:
    index: Index = INDEXES.get(indexed.table.index)()
    rows = spark.sql(
        "select 7L as id, '2026-11-20' as day, 1d as amount, timestamp '2026-11-16 09:00:00' as updated_at"
    )
    hudi.write_commit(rows, indexed.table, "bulk_insert", index.write_options(indexed.table), {})
    output = verified(spark, indexed)
    assert problems(output) == {IndexProblem.DOUBLED: 1}
    (example,) = output["examples"]["doubled"]
    assert example.startswith("7: 2 times, in day=2026-11-03/")
    assert "day=2026-11-20/" in example


@pytest.mark.parametrize("index", ["record_index", "memory"])
def test_an_index_that_lags_behind_its_table_is_found_and_made_anew(
    spark: SparkSession, tmp_path: Path, index: str
) -> None:
    shop = loaded_by_id(spark, tmp_path, index, days=5)
    with_old_index(spark, shop)
    output = verified(spark, shop)
    assert problems(output) == {IndexProblem.MISSING: 12, IndexProblem.MISPLACED: 1, IndexProblem.WITHOUT_ROW: 1}
    assert output["rows"] == 41  # by the folders: the metadata table lists no newer file
    assert len(output["examples"]["missing"]) == MAX_EXAMPLES
    assert output["examples"]["misplaced"][0].startswith("4: the table has it in day=2026-11-09/")
    commits = len(shop.timeline.commits())
    assert shop.run(spark, "rebuild_index", "r", source=None).error is None
    assert problems(verified(spark, shop, "again")) == {}
    assert len(shop.timeline.commits()) == commits
    shop.sql("update orders set amount = -5, updated_at = '2026-11-16 11:00:00' where id in (4, 105)")
    report = shop.run(spark, "incremental", "later")
    assert (report.error, report.written.inserts, report.written.updates) == (None, 0, 2)
    assert shop.rows(spark) == shop.source_rows()


def with_old_index(spark: SparkSession, shop: Orders) -> None:
    """As it was before a key moved, another went, and twelve came."""
    folder = shop.folder / "lake/orders/.hoodie/metadata"
    if shop.table.index == "record_index":
        shutil.copytree(folder, shop.folder / "old")
    key_map = _KEY_MAPS.of(shop.table.uri)
    key_map.groups_of(spark, ())
    known = dict(key_map._group_by_key)
    shop.add(*((number, "2026-11-08", 1.0, "2026-11-16 09:00:00") for number in range(100, 112)))
    shop.sql("update orders set day = '2026-11-09', updated_at = '2026-11-16 09:00:00' where id = 4")
    assert shop.run(spark, "incremental", "i").error is None
    assert shop.run(spark, "delete", "d", delete=DeleteSpec(keys=(("29",),))).error is None
    shop.sql("delete from orders where id = 29")
    if shop.table.index == "record_index":
        shutil.rmtree(folder)
        (shop.folder / "old").rename(folder)
        assert file_groups_of_keys(spark, shop.table.uri, ["100"]) == set()
    else:
        key_map.groups_of(spark, ())
        key_map._group_by_key = known


def test_a_rebuild_of_a_sound_index_leaves_it_sound(spark: SparkSession, indexed: Orders) -> None:
    assert indexed.run(spark, "rebuild_index", "r", source=None).error is None
    assert problems(verified(spark, indexed)) == {}
    indexed.change(3, -1.0, "2026-11-16 09:00:00")
    assert indexed.run(spark, "incremental", "i").written.updates == 1
    assert indexed.rows(spark) == indexed.source_rows()


def _files(shop: Orders) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (shop.folder / "lake/orders").rglob("*") if path.is_file()}
