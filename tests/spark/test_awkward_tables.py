"""Awkward tables that are ingested: loaded by one Spark session, tested in the lake against their source, and told truly."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ingestion.runs import feed_schedule, run_worker
from tests import factories
from tests.contracts.awkward import keys, losses, names, partitions, sizes, zones
from tests.contracts.awkward.check import check_copy
from tests.contracts.awkward.product import LAST, LATER, Product, onboard, watch
from tests.contracts.awkward.shape import PARQUET, SQLITE, Shape
from tests.contracts.awkward.sources import Sources, query
from tests.factories import NOW
from tests.spark.shared_session import SharedSession

CAPITALS = names.named("OrderLines", space="_")
SHAPES: dict[str, tuple[Shape, str]] = {
    "lost-and-stale": (losses.SHAPES["a row of 2031 and a stale front"], SQLITE),
    "unreadable": (losses.SHAPES["unreadable values"], PARQUET),
    "pattern": (partitions.SHAPES["pattern"], SQLITE),
    "dates": (partitions.SHAPES["date"], PARQUET),
    "hours": (partitions.SHAPES["day and hour"], SQLITE),
    "berlin": (zones.SHAPES["Berlin, the second of two hours is lost"], PARQUET),
    "decimals": (replace(keys.SHAPES["key of whole numbers in DECIMAL(12,2)"], other=""), PARQUET),
    "capitals": (CAPITALS, SQLITE),
    "one-row": (sizes.SHAPES["one row, by day"], SQLITE),
    "fat": (sizes.SHAPES["rows of 5 MB"], PARQUET),
}


def rows_in_lake(folder: Path) -> pa.Table:
    files = [str(file) for file in folder.rglob("*.parquet") if ".hoodie" not in file.parts]
    read = "SELECT * FROM read_parquet(?, hive_partitioning = false, union_by_name = true)"
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        rows = db.sql(read, params=[files]).to_arrow_table()
    return rows.drop_columns([name for name in rows.column_names if name.startswith(("_hoodie_", "_lakehub_"))])


def unique_keys(shape: Shape) -> Shape:
    """A record key is unique; the shape's doubled key is not what this is about."""
    columns = ", ".join(f'"{name}"' for name in shape.key)
    return replace(shape, rows=f"SELECT DISTINCT ON ({columns}) * FROM ({shape.rows})", upstream="")


@pytest.mark.timeout(900)  # ten tables in one test
@pytest.mark.django_db(transaction=True)
def test_what_is_said_of_awkward_tables_in_the_lake_is_true(spark: SparkSession, tmp_path: Path) -> None:
    factories.data_center("dc1", lake_uri=(tmp_path / "lake").as_uri())
    onboarded = {}
    for name, (shape, kind) in SHAPES.items():
        written = Sources(kind, tmp_path / name).write(shape, query(unique_keys(shape).rows), "dc1")
        onboarded[name] = (onboard(replace(shape, more={"ingested": True}), {"dc1": written}, name=name), written)
    load_all(spark, tmp_path)
    for now in (LATER, LAST):
        watch(now=now)
    wrong = {}
    for name, (dataset, written) in onboarded.items():
        shape, kind = SHAPES[name]
        here = rows_in_lake(tmp_path / "lake" / name)
        try:
            check_copy(unique_keys(shape), kind, Product(dataset, "dc1"), {"dc1": here}, written.rows)
        except AssertionError as problem:
            wrong[name] = str(problem)
    assert wrong == {}


def load_all(spark: SparkSession, folder: Path) -> None:
    feed_schedule.request_due_runs(now=NOW)
    worker = run_worker.Worker(
        name="host:1:a",
        launcher=SharedSession(spark),
        staging=(folder / "staging").as_uri(),
        clock=lambda: NOW,
        clock_offset=lambda: NOW - datetime.now(UTC),
        draw_jitter=lambda: 0.0,
        gate=lambda inputs, **_: [],
    )
    while (run := run_worker.run_next(worker)) is not None:
        run.refresh_from_db()
        assert (run.state, run.error) == ("succeeded", ""), run.copy
