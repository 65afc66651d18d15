"""Who reads a table's increments sees each change: what was inserted, changed, moved to another partition, and deleted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.spec import DeleteSpec
from ingestion.spark.loading import small_batches
from ingestion.spark.rejected.error_table import error_table_spec
from ingestion.spark.tables.timeline import Timeline
from tests.spark.order_shop import Orders, changed_rows

AT, LATER = "2026-11-16 09:00:00", "2026-11-16 10:00:00"


@pytest.fixture(params=[0, small_batches.MAX_ROWS], ids=["by Spark", "directly"])
def shop(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Orders:
    """Its key is the id alone, so that rows move between days."""
    monkeypatch.setattr(small_batches, "MAX_ROWS", request.param)
    orders = Orders(tmp_path, index="memory")
    orders.table = replace(orders.table, record_key=("id",))
    return orders


def test_a_reader_of_increments_sees_inserts_changes_moves_and_deletes(spark: SparkSession, shop: Orders) -> None:
    shop.fill(6, days=2)
    shop.run(spark, "bootstrap", "b")
    loaded = shop.timeline.commits()[-1].completed
    shop.sql(f"update orders set day = '2026-11-09', updated_at = '{AT}' where id = 1")
    shop.change(2, -1.0, AT)
    shop.add((7, "2026-11-01", 1.0, AT), ("x", "2026-11-01", 1.0, AT))
    assert shop.run(spark, "incremental", "i").counts.applied == 3
    assert shop.run(spark, "delete", "d", delete=DeleteSpec(keys=(("3",),))).error is None
    assert changes(spark, shop, after=loaded) == [
        ("d", 1, "2026-11-02"),
        ("d", 3, "2026-11-02"),
        ("i", 1, "2026-11-09"),
        ("i", 7, "2026-11-01"),
        ("u", 2, "2026-11-01"),
    ]


def test_rows_that_were_the_last_of_their_file_are_seen_to_go(spark: SparkSession, shop: Orders) -> None:
    """By a delete, by a move, and beside a new row that takes their place."""
    shop.add(*((number, f"2026-11-0{number}", 1.0, "2026-11-08 08:00:00") for number in (1, 2, 3, 4)))
    shop.run(spark, "bootstrap", "b")
    loaded = shop.timeline.commits()[-1].completed
    shop.sql(f"update orders set day = '2026-11-09', updated_at = '{AT}' where id = 1")
    shop.sql(f"update orders set day = '2026-11-04', updated_at = '{AT}' where id = 3")
    assert shop.run(spark, "incremental", "i").counts.applied == 2
    assert shop.run(spark, "delete", "d", delete=DeleteSpec(keys=(("2",),))).error is None
    shop.sql(f"update orders set day = '2026-11-08', updated_at = '{LATER}' where id in (3, 4)")
    shop.add((5, "2026-11-04", 1.0, LATER))
    assert shop.run(spark, "incremental", "i2").counts.applied == 3
    assert shop.rows(spark) == [*(row for row in shop.source_rows() if row[0] != 2)]
    seen = changes(spark, shop, after=loaded)
    assert [(number, day) for operation, number, day in seen if operation == "d"] == [
        (1, "2026-11-01"),
        (2, "2026-11-02"),
        (3, "2026-11-03"),
        (3, "2026-11-04"),
        (4, "2026-11-04"),
    ]


def test_a_table_without_the_log_stays_without_and_an_error_table_has_none(spark: SparkSession, orders: Orders) -> None:
    log = "hoodie.table.cdc.enabled"
    orders.table = replace(orders.table, change_log=False)
    orders.add((1, "2026-11-01", 1.0, "2026-11-16 08:00:00"), ("x", "2026-11-01", 1.0, "2026-11-16 08:00:00"))
    orders.run(spark, "bootstrap", "b")
    orders.table = replace(orders.table, change_log=True)
    orders.change(1, -1.0, AT)
    assert orders.run(spark, "incremental", "i").counts.applied == 1
    assert orders.timeline.properties.get(log, "false") == "false"
    assert Timeline(error_table_spec(orders.table).uri).properties.get(log, "false") == "false"
    assert not list((orders.folder / "lake").rglob("*.cdc"))


def changes(spark: SparkSession, shop: Orders, *, after: str) -> list[tuple[str, int, str]]:
    """Operation, id and day of each change that was completed after an instant, in order of these three."""
    return sorted((operation, row["id"], row["day"]) for operation, row in changed_rows(spark, shop.table.uri, after))
