"""Small files are put together beside the jobs that write the table, and nobody notices: no row changes, none is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.report import WrittenKeys
from ingestion.spark.contract.spec import ClusterSpec, DeleteSpec
from ingestion.spark.indexes import INDEXES
from ingestion.spark.jobs import cluster
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import PartitionChange
from tests.spark.job_processes import died_at
from tests.spark.order_shop import Orders

DAYS = ("2026-11-01", "2026-11-02")
BATCHES = 3
FACTS = ("_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path", "id", "day", "amount")


@pytest.fixture(params=list(INDEXES))
def shop(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Orders:
    """A table of two partitions, in each a file of the load and of each of some batches. Its key does not say its partition."""
    shop = Orders(tmp_path, index=request.param)
    shop.table = replace(shop.table, record_key=("id",))
    sizes = hudi._file_size_options
    with monkeypatch.context() as unpacked:
        unpacked.setattr(
            hudi, "_file_size_options", lambda table: sizes(table) | {"hoodie.parquet.small.file.limit": "0"}
        )
        for number in range(BATCHES):
            _add(shop, number)
            assert shop.run(spark, "incremental" if number else "bootstrap", f"r{number}").error is None
    assert [len(_newest_files(shop, day)) for day in DAYS] == [BATCHES, BATCHES]
    return shop


def test_nothing_changes_but_the_number_of_files(spark: SparkSession, shop: Orders) -> None:
    before, commits = shop.rows(spark, *FACTS), shop.timeline.commits()
    report = shop.run(spark, "cluster", "c")
    assert (report.status, report.error) == ("succeeded", None)
    assert shop.rows(spark, *FACTS) == before
    for day in DAYS:
        (file,) = _newest_files(shop, day)
        keys = pq.read_table(file, columns=["_hoodie_record_key"], partitioning=None)[0].to_pylist()
        assert keys == sorted(keys)
        assert len(keys) == 2 * BATCHES
    commit = shop.timeline.commits()[-1]
    assert (commit.operation, commit.partitions, commit.written) == ("CLUSTER", {}, PartitionChange())
    assert (commit.checkpoint, report.partitions) == (None, {})
    for more in ({}, {"hoodie.datasource.query.incremental.format": "cdc"}):
        assert _rows_since(spark, shop, commits[-1].completed, more) == 0
    assert _rows_since(spark, shop, commits[-2].completed, {}) == 4


def test_jobs_find_the_rows_where_they_are_then(spark: SparkSession, shop: Orders) -> None:
    shop.run(spark, "cluster", "c")
    shop.sql(
        f"update orders set amount = -1, day = '{DAYS[1]}', updated_at = '2026-11-17 08:00:00' where id in (0, 1, 11)"
    )
    _add(shop, BATCHES)
    report = shop.run(spark, "incremental", "i")
    assert (report.error, report.written) == (None, WrittenKeys(inserts=5, updates=2))
    assert shop.rows(spark) == shop.source_rows()
    gone = shop.run(spark, "delete", "d", delete=DeleteSpec(keys=(("12",), ("2",))))
    assert (gone.error, gone.written.deletes) == (None, 2)
    shop.sql("delete from orders where id in (2, 12)")
    assert shop.rows(spark) == shop.source_rows()
    assert shop.run(spark, "cluster", "c").instant == shop.timeline.commits()[-3].instant


def test_a_partition_that_a_follower_writes_meanwhile_is_left_as_it_is(
    spark: SparkSession, shop: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = cluster.write_merged_files

    def write_beside_a_follower(*given: Any) -> Any:
        merged = write(*given)
        shop.change(10, -1.0, "2026-11-17 08:00:00")
        assert shop.run(spark, "incremental", "i").written.updates == 1
        return merged

    monkeypatch.setattr(cluster, "write_merged_files", write_beside_a_follower)
    assert shop.run(spark, "cluster", "c").status == "succeeded"
    assert [len(_newest_files(shop, day)) for day in DAYS] == [BATCHES, 1]
    assert shop.rows(spark) == shop.source_rows()


@pytest.mark.parametrize("shop", ["record_index"], indirect=True)
def test_a_clustering_that_is_killed_leaves_the_table_as_it_was(spark: SparkSession, shop: Orders) -> None:
    before, files = shop.rows(spark, *FACTS), [_newest_files(shop, day) for day in DAYS]
    for failpoint in ("ingestion.before_write", "ingestion.inside_commit"):
        died_at(shop, "cluster", "c", failpoint)
        assert shop.rows(spark, *FACTS) == before
        assert [_newest_files(shop, day) for day in DAYS] == files
    died_at(shop, "cluster", "c", "ingestion.after_commit")
    report = shop.run(spark, "cluster", "c")
    assert (report.status, report.error, report.instant) == ("succeeded", None, shop.timeline.completed()[-1].instant)
    assert shop.rows(spark, *FACTS) == before
    assert [len(_newest_files(shop, day)) for day in DAYS] == [1, 1]
    shop.change(10, -1.0, "2026-11-17 08:00:00")
    assert shop.run(spark, "incremental", "i").written.updates == 1
    assert _orphans(shop, spark) == set()


@pytest.mark.parametrize("shop", ["simple"], indirect=True)
def test_what_is_not_worth_it_is_left(spark: SparkSession, shop: Orders) -> None:
    for given in (ClusterSpec(min_files=BATCHES + 1), ClusterSpec(quiet_s=3600.0)):
        assert shop.run(spark, "cluster", "c", cluster=given).status == "nothing_to_do"
    assert shop.run(spark, "cluster", "d", partitions=DAYS[:1]).status == "succeeded"
    assert [len(_newest_files(shop, day)) for day in DAYS] == [1, BATCHES]


def _add(shop: Orders, number: int) -> None:
    at = f"2026-11-16 0{number}:00:00"
    shop.add(*((number * 10 + place, DAYS[place % 2], float(place), at) for place in range(4)))


def _newest_files(shop: Orders, day: str) -> list[str]:
    """Those that readers read."""
    from hudi import HudiTable

    slices = HudiTable(shop.table.uri).get_file_slices()
    paths = sorted(each.base_file_relative_path() for each in slices)
    return [f"{shop.folder}/lake/orders/{path}" for path in paths if path.startswith(f"day={day}/")]


def _orphans(shop: Orders, spark: SparkSession) -> set[str]:
    """Data files of no commit of the timeline."""
    instants = {file.instant for file in shop.timeline.completed()}
    names = [path.stem for path in (shop.folder / "lake" / "orders").glob("day=*/*.parquet")]
    return {name for name in names if name.rpartition("_")[2] not in instants}


def _rows_since(spark: SparkSession, shop: Orders, completed: str, more: dict[str, str]) -> int:
    options = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": completed}
    reader = spark.read.format("hudi").options(**options, **more)
    return int(reader.load(shop.table.uri).count())
