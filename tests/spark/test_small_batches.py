"""A small batch costs by its rows and not by the table: no Spark job, few bytes, and the table is the same as Spark would leave it."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.spark import session
from ingestion.spark.file_groups import java_client
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.loading import small_batches
from ingestion.spark.tables import hudi
from ingestion.spark.tables.checkpoint_metadata import commit_metadata
from tests.fuzz_seed import REPEAT, SEED
from tests.spark.order_shop import Orders

LOADED_AT = "2026-11-16 08:00:00"
ROWS_A_DAY = 5000
MOST_BYTES = 1_500_000
"""More were read when each footer held a Bloom filter."""


class Counted:
    """Spark jobs, and bytes that this process and its JVM read."""

    jobs = bytes_read = 0


@contextmanager
def counting(spark: SparkSession) -> Iterator[Counted]:
    counted, jobs, bytes_read = Counted(), _jobs_so_far(spark), _bytes_read(spark)
    yield counted
    counted.jobs, counted.bytes_read = _jobs_so_far(spark) - jobs, _bytes_read(spark) - bytes_read


def _jobs_so_far(spark: SparkSession) -> int:
    """As the scheduler counts them: what Spark's listeners know comes later, where the machine is busy."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())  # type: ignore[attr-defined]


def _bytes_read(spark: SparkSession) -> int:
    """By this process, and by the JVM from file systems: what it reads of its own jars is as it pleases."""
    lines = Path(f"/proc/{os.getpid()}/io").read_text().splitlines()
    own = next(int(line.split()[1]) for line in lines if line.startswith("rchar:"))
    statistics_of_jvm = session.jvm(spark).org.apache.hadoop.fs.FileSystem.getAllStatistics()
    return own + sum(int(each.getBytesRead()) for each in statistics_of_jvm)


def load(spark: SparkSession, orders: Orders, rows: int) -> None:
    """A table of so many rows, `ROWS_A_DAY` in each partition, straight from Spark; the shop's database has none of them."""
    days = rows // ROWS_A_DAY
    day = f"date_format(date_add('2026-01-01', cast(id % {days} as int)), 'yyyy-MM-dd') as day"
    columns = ("id", day, "cast(id as double) as amount", f"timestamp '{LOADED_AT}' as updated_at")
    index: Index = INDEXES.get(orders.table.index)()
    position = {"watermark": {"type": "str", "value": LOADED_AT}, "seen": []}
    marks = commit_metadata(run={"run_id": "b"}, checkpoint=position)
    hudi.write_commit(
        spark.range(rows).selectExpr(*columns), orders.table, "bulk_insert", index.write_options(orders.table), marks
    )
    index.settle(spark, orders.table, rows)


def costs_of_a_changed_row(spark: SparkSession, orders: Orders, rows: int) -> list[Counted]:
    """Of some batches, one after the other; the first warms up what is kept. Each changes another row: of one that was changed before,
    its file is small, and the block of the index that knows it is mostly in memory."""
    orders.table = replace(orders.table, record_key=("id",))
    load(spark, orders, rows)
    measured = []
    for number, key in enumerate((5, 17, 4_567, 31_415, 88_888)):
        orders.sql("delete from orders")
        day = date(2026, 1, 1) + timedelta(days=key % (rows // ROWS_A_DAY))
        orders.add((key, day.isoformat(), -1.0 - number, f"2026-11-17 0{number}:00:00"))
        with counting(spark) as counted:
            report = orders.run(spark, "incremental", f"i{number}")
        assert (report.error, report.counts.applied, report.written.updates) == (None, 1, 1)
        measured.append(counted)
    return measured[1:]


@pytest.mark.parametrize(("index", "many"), [("record_index", 250_000), ("memory", 1_000_000)])
def test_a_changed_row_costs_as_much_in_a_large_table_as_in_one_of_100_000_rows(
    spark: SparkSession, tmp_path: Path, index: str, many: int
) -> None:
    """Its key does not say its partition. Compared are batches that come after as many others. Hudi takes minutes for a million entries."""
    small = costs_of_a_changed_row(spark, Orders(tmp_path / "small", index=index), 100_000)
    large = costs_of_a_changed_row(spark, Orders(tmp_path / "large", index=index), many)
    pairs = [(few.bytes_read, many.bytes_read) for few, many in zip(small, large, strict=True)]
    assert max(of_large / of_small for of_small, of_large in pairs) <= 1.5, pairs
    assert max(of_large for _, of_large in pairs) <= MOST_BYTES, pairs
    assert {counted.jobs for counted in (*small, *large)} == {0}


@pytest.mark.parametrize("index", ["record_index", "memory", "hbase"])
def test_a_batch_that_is_spread_over_a_month_is_no_work_of_sparks(
    spark: SparkSession, tmp_path: Path, index: str
) -> None:
    """All files are written anew, some of them for a row that moves there."""
    shop = Orders(tmp_path, index=index)
    shop.table = replace(shop.table, record_key=("id",))
    shop.fill(300, days=30)
    assert shop.run(spark, "bootstrap", "b").error is None
    shop.sql("update orders set amount = -1, updated_at = '2026-11-17 08:00:00' where id % 3 = 0")
    shop.sql("update orders set day = '2026-11-30', updated_at = '2026-11-17 08:00:00' where id < 4")
    with counting(spark) as counted:
        report = shop.run(spark, "incremental", "i")
    assert (report.error, report.counts.applied, counted.jobs) == (None, 102, 0)
    assert shop.rows(spark) == shop.source_rows()


@pytest.mark.parametrize("index", list(INDEXES))
def test_random_batches_leave_the_table_that_spark_leaves(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    """Row by row and count by count: new keys, changes, rows that come again, older ones, and keys that move where the key does not say the
    partition, which the seed decides."""
    key = random.Random(f"{SEED} {index}").choice([("id",), ("id", "day")])
    randomly, shops = random.Random(SEED), [Orders(tmp_path / way, index=index) for way in ("directly", "spark")]
    for shop in shops:
        shop.table = replace(shop.table, record_key=key)
        # So far back that the source hands over rows that are older than the stored ones.
        shop.source = replace(shop.source, overlap_s=30 * 86_400.0)
        shop.fill(12, days=4)
        assert shop.run(spark, "bootstrap", "b").error is None
    for number in range(1, 3):
        rows = [_random_row(randomly, number) for _ in range(8)]
        reports = []
        for shop, most in zip(shops, (small_batches.MAX_ROWS, 0), strict=True):
            monkeypatch.setattr(small_batches, "MAX_ROWS", most)
            shop.sql("delete from orders")
            shop.add(*rows)
            with counting(spark) as counted:
                reports.append(shop.run(spark, "incremental", f"i{number}"))
            assert counted.jobs == 0 or most == 0 or index == "simple"
            assert counted.jobs or most, "Spark's way has Spark jobs"
        assert reports[0].error is reports[1].error is None, REPEAT
        assert reports[0].counts == reports[1].counts, REPEAT
        assert reports[0].is_accounted, REPEAT
        assert shops[0].rows(spark) == shops[1].rows(spark), REPEAT


def _random_row(randomly: random.Random, number: int) -> tuple[int, str, float, str]:
    at = f"2026-11-1{randomly.choice([6, 6, 6 + number])} 0{randomly.randrange(7, 10)}:00:00"
    return (randomly.randrange(18), f"2026-11-{randomly.randrange(1, 6):02}", float(randomly.randrange(3)), at)


@pytest.mark.parametrize("index", ["memory", "record_index"])
def test_a_partition_may_have_any_name_that_a_folder_has(spark: SparkSession, tmp_path: Path, index: str) -> None:
    """Hudi's answers come as one text: no character of a name may end a part of it."""
    shop = Orders(tmp_path, index=index)
    shop.table = replace(shop.table, record_key=("id",))
    shop.fill(2)
    assert shop.run(spark, "bootstrap", "b").error is None
    for number, name in enumerate(["a\1b", "x=y", "% ü\n"]):
        shop.add((10 + number, name, 1.0, "2026-11-17 07:00:00"))
    assert shop.run(spark, "incremental", "i1").error is None
    shop.sql("update orders set amount = 2, updated_at = '2026-11-17 08:00:00' where id >= 10")
    report = shop.run(spark, "incremental", "i2")
    assert (report.error, report.counts.applied, report.written.inserts) == (None, 3, 0)
    assert shop.rows(spark) == shop.source_rows()


class FailingClient:
    """As Hudi's, which could not write the first row and goes on."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def statuses(self, rewrites: Any) -> Any:
        statuses = self._client.statuses(rewrites)
        statuses[0].setTotalErrorRecords(1)
        return statuses


def test_a_batch_with_a_row_that_could_not_be_written_is_not_committed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Orders(tmp_path)
    shop.fill(6)
    assert shop.run(spark, "bootstrap", "b").error is None
    before = shop.rows(spark)
    shop.change(1, -1.0, "2026-11-17 07:00:00")
    with monkeypatch.context() as failing:
        open_client = java_client.open_client
        failing.setattr(java_client, "open_client", lambda *given: FailingClient(open_client(*given)))
        report = shop.run(spark, "incremental", "i1")
    assert "could not write 1 of the rows of `orders`" in str(report.error)
    assert shop.rows(spark) == before
    assert shop.run(spark, "incremental", "i2").counts.applied == 1
    assert shop.rows(spark) == shop.source_rows()
