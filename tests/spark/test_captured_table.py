"""A table of MariaDB in the lake: its rows by a load, then every change of them by the binlog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.changes.tombstones import read_tombstones
from tests.services.tapped_server import TappedServer, tapped_server
from tests.spark.captured_shop import CapturedShop

DATABASE = "lakehub_captured"


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        yield tapped


@pytest.mark.parametrize("index", ["memory", "record_index", "simple"])
def test_the_lake_has_what_the_source_has(
    spark: SparkSession, server: TappedServer, tmp_path: Path, index: str
) -> None:
    shop = CapturedShop(server, tmp_path, "trips", index=index)
    server.execute(
        "CREATE TABLE trips (id int PRIMARY KEY, city varchar(40), fare decimal(8,2), at datetime(6))",
        "INSERT INTO trips SELECT seq, concat('city ', seq), seq / 4, '2026-11-26 08:00:00' FROM seq_1_to_50",
    )
    server.take("trips")
    loaded = shop.run(spark, "bootstrap")
    assert (loaded.counts.read, loaded.counts.applied) == (50, 50)
    server.execute(
        "UPDATE trips SET city = 'Ulm' WHERE id <= 3",
        "DELETE FROM trips WHERE id IN (4, 5)",
        "INSERT INTO trips VALUES (51, 'Köln', 1.5, NULL), (52, NULL, NULL, '2026-11-26 09:00:00.000001')",
        "UPDATE trips SET id = 100 WHERE id = 6",
        "UPDATE trips SET fare = 9 WHERE id = 1",
    )
    report = shop.follow(spark)
    assert (report.counts.read, report.counts.superseded, report.counts.errors) == (10, 1, 0)
    assert (report.written.inserts, report.written.updates, report.written.deletes) == (3, 3, 3)
    assert shop.in_lake(spark) == shop.in_source()
    assert read_tombstones(spark, shop.table, ["4", "5", "6", "7"]).states.keys() == {"4", "5", "6"}
    assert shop.follow(spark).status == "nothing_to_do"
