"""Versions of files that were replaced stay for a time, however many commits come meanwhile."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.spec import DeleteSpec
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import instant_to_datetime
from tests.spark.order_shop import Orders

HOURS = 2
_INSTANT = re.compile(r"\d{17}")


@pytest.fixture
def followed(spark: SparkSession, orders: Orders) -> Orders:
    """A table of one row, so of one file, with six commits from longer ago than `HOURS`."""
    orders.fill(1, days=1)
    assert orders.run(spark, "bootstrap", "b").error is None
    _change(spark, orders, 5, start=0)
    for file in (orders.folder / "lake" / "orders").rglob("*"):
        if file.is_file():
            file.rename(file.with_name(_INSTANT.sub(_earlier, file.name)))
    return orders


def test_what_was_replaced_longer_ago_is_gone_and_what_was_current_then_stays(
    spark: SparkSession, followed: Orders
) -> None:
    before = _versions(followed)
    _change(spark, followed, 6, start=5)
    kept = _versions(followed)
    assert len(before) == 6
    assert before & kept == {max(before)}
    assert len(kept - before) == 6
    assert followed.rows(spark) == followed.source_rows()


@pytest.mark.parametrize(("behind", "is_kept"), [(HOURS, False), (HOURS + 6, True)])
def test_commits_are_archived_behind_the_oldest_reader_and_the_checkpoint_never(
    spark: SparkSession, followed: Orders, monkeypatch: pytest.MonkeyPatch, behind: int, is_kept: bool
) -> None:
    """Nothing but deletes, which carry none, comes after the commits from longer ago. A reader keeps what it has not read: that many hours."""
    options = hudi.table_options
    few = {"hoodie.keep.min.commits": "3", "hoodie.keep.max.commits": "4"}
    monkeypatch.setattr(hudi, "MIN_COMMITS_KEPT", 3)
    monkeypatch.setattr(hudi, "table_options", lambda table, **given: options(table, **given) | few)
    followed.table = replace(followed.table, retention_hours=behind)
    before, checkpoint = {file.instant for file in followed.timeline.completed()}, followed.timeline.checkpoint()
    for number in range(8):
        followed.add((100 + number, "2026-11-01", 1.0, "2026-11-15 00:00:00"))
        backfilled = followed.run(spark, "backfill", f"f{number}", partitions=("2026-11-01",))
        deleted = followed.run(
            spark, "delete", f"d{number}", delete=DeleteSpec(keys=((str(100 + number), "2026-11-01"),))
        )
        followed.sql(f"delete from orders where id = {100 + number}")
        assert (backfilled.error, deleted.error, deleted.written.deletes) == (None, None, 1)
    kept = before & {file.instant for file in followed.timeline.completed()}
    assert kept == before if is_kept else kept <= set(sorted(before)[-2:])
    latest = followed.timeline.checkpoint()
    assert checkpoint is not None
    assert latest is not None
    assert (latest.position, latest.instant in before) == (checkpoint.position, False)
    assert followed.rows(spark) == followed.source_rows()


def _change(spark: SparkSession, orders: Orders, times: int, *, start: int) -> None:
    for number in range(start, start + times):
        orders.change(0, 100.0 + number, f"2026-11-16 09:{number:02}:00")
        assert (
            orders.run(spark, "incremental", f"i{number}", table=replace(orders.table, retention_hours=HOURS)).error
            is None
        )


def _versions(orders: Orders) -> set[str]:
    """By the instants that wrote them."""
    return {
        file.stem.rpartition("_")[2]
        for file in Path(orders.folder / "lake" / "orders" / "day=2026-11-01").glob("*.parquet")
    }


def _earlier(instant: re.Match[str]) -> str:
    at = instant_to_datetime(instant[0]) - timedelta(hours=HOURS + 1)
    return f"{at:%Y%m%d%H%M%S}{instant[0][14:]}"
