"""A table of cells in the lake: the rows that they make by a load, then each new cell changes the columns that come from its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.spec import ReplaySpec
from lakehub.kernel.cells.cell_tables import CellOptions
from tests.services.cell_table import CellTable
from tests.services.tapped_server import TappedServer, tapped_server
from tests.spark.captured_shop import CapturedShop
from tests.spark.order_shop import read
from tests.unit.ingestion.capture.cells import rows_of

DATABASE = "lakehub_cells_lake"
OPTIONS = CellOptions(delete="removed", text=("raw",))


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        yield tapped


def in_lake(shop: CapturedShop, spark: SparkSession) -> dict[Any, dict[str, Any]]:
    """Without nulls."""
    return {
        key: {name: value for name, value in row.items() if value is not None and name != "row_key"}
        for (key,), row in shop.in_lake(spark).items()
    }


def test_rows_come_from_cells_and_each_cell_changes_its_columns(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    shop = CapturedShop(
        server,
        tmp_path,
        "trips",
        record_key=("row_key",),
        plugin="schemaless",
        said_of_table="?delete=removed&text=raw",
    ).with_history()
    table = CellTable(server, "trips")
    cells: list[tuple[Any, str, int, Any]] = [
        ("a", "base", 1, {"city": "Ulm", "fare": 12}),
        ("a", "base", 3, {"city": "Bonn", "fare": 13}),
        ("a", "status", 7, {"word": "begun"}),
        ("b", "base", 2, {"city": "Kiel", "stops": [1, {"at": "x"}]}),
    ]
    for cell in cells:
        table.add(*cell)
    server.take("trips", cells=OPTIONS)
    loaded = shop.run(spark, "bootstrap")
    assert (loaded.counts.applied, loaded.counts.errors) == (2, 0)
    first = in_lake(shop, spark)
    assert first["b"].pop("base__stops") == '[1,{"at":"x"}]'
    expected = rows_of(cells)
    expected["b"].pop("base__stops")
    assert first == expected

    later: list[tuple[Any, str, int, Any]] = [
        ("a", "status", 8, {"word": "ended", "well": True}),
        ("a", "base", 2, {"city": "older", "only_here": 1}),
        ("b", "base", 5, {"city": "Kiel", "fare": 12.5}),
        ("c", "status", 1, {"word": "begun"}),
        ("b", "status", 4, None),
    ]
    for cell in later:
        table.add(*cell)
    report = shop.follow(spark, cells=OPTIONS)
    assert (report.counts.read, report.counts.superseded, report.counts.errors) == (5, 1, 0)
    assert report.schema["widened"] == ["base__fare"]
    expected = rows_of([*cells, *later])
    assert in_lake(shop, spark) == expected

    table.add("c", "removed", 9, "{}")
    table.add("a", "base", 4, "{broken")
    table.add("c", "status", 2, {"word": "late"})
    table.add("b", "raw", 1, {"Odd-Name": {"x": 1}})
    report = shop.follow(spark, cells=OPTIONS)
    assert (report.counts.errors, report.written.deletes) == (1, 1)
    after = in_lake(shop, spark)
    assert after.keys() == {"a", "b"}
    assert after["b"]["raw"] == '{"Odd-Name":{"x":1}}'

    read(spark, shop.table.history_uri).createOrReplaceTempView("trips_history")
    carried = {
        (row["row_key"], row["_lakehub_reference_key"]): row["_lakehub_changed_columns"]
        for row in spark.sql("SELECT * FROM trips_history WHERE NOT _lakehub_is_snapshot").collect()
    }
    assert carried.keys() == {("a", 8), ("a", 2), ("b", 5), ("c", 1), ("b", 4), ("c", 9), ("c", 2), ("b", 1)}
    assert {"base__city", "base__ref_key"} < {*carried["a", 2]}
    assert "status__word" not in carried["a", 2]
    assert carried["b", 1] == ["raw", "raw__ref_key", "row_key"]
    newest = "SELECT row_key, max_by(base__city, base__ref_key) FROM trips_history WHERE base__ref_key IS NOT NULL GROUP BY row_key"
    assert {row[0]: row[1] for row in spark.sql(newest).collect()} == {"a": "Bonn", "b": "Kiel"}


def test_broken_cells_are_mended_and_have_the_place_that_they_had(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    """Those of the load, and those of the log."""
    shop = CapturedShop(server, tmp_path, "broken", record_key=("row_key",), plugin="schemaless")
    table = CellTable(server, "broken")
    table.add("a", "base", 1, {"city": "Ulm", "fare": 1})
    table.add("b", "base", 2, "{broken")
    server.take("broken", cells=CellOptions())
    assert shop.run(spark, "bootstrap").counts.errors == 1
    table.add("a", "base", 2, '{"city": NaN}')
    table.add("c", "base", 5, '{"city": 7}')
    table.add("c", "base", 6, {"city": "Kiel"})
    server.execute("UPDATE broken SET body = '{\"city\": \"changed\"}' WHERE row_key = 'a' AND ref_key = 1")
    assert shop.follow(spark, cells=CellOptions()).counts.errors == 3
    before = {
        "a": {"base__ref_key": 1, "base__city": "Ulm", "base__fare": 1},
        "c": {"base__ref_key": 6, "base__city": "Kiel"},
    }
    assert in_lake(shop, spark) == before

    errors = {json.loads(row["raw"])["after"]["body"]: row["error_key"] for row in shop.rejected(spark)}
    fixes = {
        errors["{broken"]: json.dumps({"body": {"city": "Bonn"}}),
        errors['{"city": NaN}']: json.dumps({"body": '{"city": "Köln"}'}),
        errors['{"city": 7}']: json.dumps({"body": {"city": "too late"}}),
        errors['{"city": "changed"}']: json.dumps({"body": {"new": 1}}),
    }
    report = shop.run(spark, "replay", replay=ReplaySpec(tuple(fixes), "ana", fixes))
    assert (report.counts.applied, report.counts.errors) == (3, 1)  # a field that is new comes with a new cell only
    after = shop.run(spark, "incremental")
    assert (after.counts.read, after.counts.superseded, after.counts.errors) == (3, 1, 0)
    assert in_lake(shop, spark) == {
        "a": {"base__ref_key": 2, "base__city": "Köln"}, "b": {"base__ref_key": 2, "base__city": "Bonn"}, "c": before["c"],
    }  # fmt: skip


def test_a_load_goes_on_where_cells_need_other_columns(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    """A cell in the middle, which no sample has: it makes a column, and widens another."""
    shop = CapturedShop(server, tmp_path, "many", record_key=("row_key",), plugin="schemaless")
    CellTable(server, "many")
    server.execute(
        "INSERT INTO many (row_key, column_name, ref_key, body) SELECT concat('k', lpad(seq, 5, '0')), 'base', 1, "
        'CASE WHEN seq = 1500 THEN \'{"n": 1.5, "late": true}\' ELSE \'{"n": 2}\' END FROM seq_1_to_3000'
    )
    server.take("many", cells=CellOptions())
    shop.run(spark, "bootstrap", limits={"chunk_rows": 1_000})
    lake = in_lake(shop, spark)
    assert (len(lake), lake["k01500"]["base__n"], lake["k01500"]["base__late"]) == (3000, 1.5, True)
    assert {row["base__n"] for row in lake.values()} == {1.5, 2.0}
