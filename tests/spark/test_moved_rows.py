"""A row whose partition is another one now moves there, or stays where it is, as the dataset's policy says: by every index, written directly or by Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.domain.accounting import RowCounts
from ingestion.spark.contract.spec import DeleteSpec
from ingestion.spark.indexes import INDEXES
from ingestion.spark.loading import small_batches
from ingestion.spark.tables import hudi
from tests.spark.order_shop import Orders

LATER, LATEST, LAST = "2026-11-16 09:00:00", "2026-11-16 10:00:00", "2026-11-16 11:00:00"
OLD, NEW = "2026-11-0{}", "2026-11-09"


WAYS = [(index, way) for index in INDEXES for way in ("by Spark", "directly") if (index, way) != ("simple", "directly")]
"""How small batches are judged and written. Without an index that knows all keys they are always Spark's."""


def stored(spark: SparkSession, shop: Orders) -> dict[int, tuple[str, float]]:
    """By key its day and amount. Each lies once, in the folder of its day."""
    rows = shop.rows(spark, "id", "day", "amount", "_hoodie_partition_path")
    assert [folder for _, _, _, folder in rows] == [f"day={day}" for _, day, _, _ in rows]
    assert len({id_ for id_, *_ in rows}) == len(rows)
    return {id_: (day, amount) for id_, day, amount, _ in rows}


def moved(shop: Orders) -> Any:
    (newest, *_) = shop.timeline.newest_first()
    return newest.run.get("moved", 0)


@pytest.mark.parametrize("stays", [False, True], ids=["move", "stay"])
@pytest.mark.parametrize(("index", "way"), WAYS)
def test_a_row_with_another_partition(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: str, way: str, stays: bool
) -> None:
    monkeypatch.setattr(small_batches, "MAX_ROWS", 0 if way == "by Spark" else small_batches.MAX_ROWS)
    shop = Orders(tmp_path, index=index)
    shop.table = replace(shop.table, record_key=("id",), keys_stay=stays)
    shop.fill(10)
    assert shop.run(spark, "bootstrap", "b").error is None
    rows = stored(spark, shop)
    assert rows[4] == (OLD.format(2), 4.0)
    shop.sql(f"update orders set amount = -4, day = '{NEW}', updated_at = '{LATER}' where id = 4")
    shop.sql(f"update orders set day = '{NEW}', updated_at = '{LATER}' where id in (5, 6)")
    shop.add((6, "2026-11-08", -66.0, LATEST), (10, NEW, 10.0, LATER))
    report = shop.run(spark, "incremental", "i")
    assert (report.error, report.counts) == (None, RowCounts(read=5, applied=4, superseded=1))
    rows |= {4: (NEW, -4.0), 5: (NEW, 5.0), 6: ("2026-11-08", -66.0), 10: (NEW, 10.0)}
    if stays:
        rows |= {4: (OLD.format(2), -4.0), 5: (OLD.format(3), 5.0), 6: (OLD.format(1), -66.0)}
    assert stored(spark, shop) == rows
    assert moved(shop) == (0 if stays else 3)

    # What is there as it is said is there, wherever it lies.
    again = shop.run(spark, "backfill", "f", partitions=(NEW,)).counts
    assert again == RowCounts(read=4, superseded=1, redelivered=3)
    shop.sql(f"update orders set amount = -44, updated_at = '{LAST}' where id in (4, 7)")
    assert shop.run(spark, "incremental", "j").counts.applied == 2
    rows |= {4: (rows[4][0], -44.0), 7: (rows[7][0], -44.0)}
    assert stored(spark, shop) == rows
    verified = shop.run(spark, "verify_index", "v", source=None).output
    assert (verified["rows"], {*verified["problems"].values()}) == (11, {0})

    assert shop.run(spark, "delete", "d", delete=DeleteSpec(keys=(("4",), ("10",)))).written.deletes == 2
    assert stored(spark, shop) == {id_: row for id_, row in rows.items() if id_ not in (4, 10)}
    assert shop.run(spark, "backfill", "g", partitions=(NEW,)).counts.applied == 2
    assert stored(spark, shop) == rows | {4: (NEW, -44.0)}


def test_many_rows_that_move_go_where_they_are_to_be_without_a_look_up_by_the_table_format(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its record index a key that moves may be removed after it was noted."""
    monkeypatch.setattr(small_batches, "MAX_ROWS", 0)
    shop = Orders(tmp_path, index="record_index")
    shop.table = replace(shop.table, record_key=("id",))
    shop.fill(300)
    assert shop.run(spark, "bootstrap", "b").error is None
    columns = hudi.stored_schema(spark, shop.table)
    shop.sql(f"update orders set day = '2026-11-0' || (1 + (id + 1) % 3), updated_at = '{LATER}' where id % 5 > 0")
    shop.sql(f"update orders set amount = -id, updated_at = '{LATER}' where id % 5 = 0")
    report = shop.run(spark, "incremental", "i")
    assert (report.error, report.counts) == (None, RowCounts(read=300, applied=300))
    assert moved(shop) == 240
    assert shop.rows(spark) == shop.source_rows()
    assert hudi.stored_schema(spark, shop.table) == columns
    (newest, *_) = shop.timeline.newest_first()
    assert newest.operation == "UPSERT_PREPPED"
    verified = shop.run(spark, "verify_index", "v", source=None).output
    assert (verified["rows"], {*verified["problems"].values()}) == (300, {0})


def test_another_policy_is_gone_by_from_the_next_change_on(spark: SparkSession, orders: Orders) -> None:
    """And a load with `replace` puts every row to where the source says."""
    orders.table = replace(orders.table, record_key=("id",), keys_stay=True)
    orders.fill(6)
    orders.run(spark, "bootstrap", "b")
    orders.sql(f"update orders set day = '{NEW}', updated_at = '{LATER}' where id in (4, 5)")
    assert orders.run(spark, "incremental", "i").counts.applied == 2
    assert {day for day, _ in stored(spark, orders).values()} == {OLD.format(number) for number in (1, 2, 3)}
    orders.table = replace(orders.table, keys_stay=False)
    orders.sql(f"update orders set updated_at = '{LATEST}' where id = 4")
    assert orders.run(spark, "incremental", "j").counts.applied == 1
    assert (stored(spark, orders)[4][0], stored(spark, orders)[5][0]) == (NEW, OLD.format(3))
    orders.table = replace(orders.table, keys_stay=True)
    assert orders.run(spark, "bootstrap", "r", replace=True).error is None
    assert orders.rows(spark) == orders.source_rows()


def test_where_the_key_says_the_partition_another_partition_is_another_key(spark: SparkSession, orders: Orders) -> None:
    orders.table = replace(orders.table, keys_stay=True)
    orders.fill(3)
    orders.run(spark, "bootstrap", "b")
    orders.add((0, NEW, 7.0, LATER))
    assert orders.run(spark, "incremental", "i").counts.applied == 1
    assert orders.rows(spark) == orders.source_rows()
