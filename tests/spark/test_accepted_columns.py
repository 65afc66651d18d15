"""A version of the schema that somebody has registered is in the lake before a row has its columns."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.domain.log_moves import SCHEMA_VERSION
from ingestion.domain.schema import Schema
from ingestion.following.source_looks import SourceLook
from tests.services.tapped_server import TappedServer, tapped_server
from tests.spark.captured_shop import SECRET, CapturedShop

DATABASE = "lakehub_accepted"


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        yield tapped


def sees_something(shop: CapturedShop) -> bool:
    url = shop.server.url.render_as_string(hide_password=False)
    return SourceLook().has_changes(shop.spec("incremental"), {SECRET: url}, now=datetime.now(UTC))


@pytest.mark.parametrize("index", ["memory", "record_index"])
def test_an_accepted_version_is_in_the_table_before_a_row_has_it(
    spark: SparkSession, server: TappedServer, tmp_path: Path, index: str
) -> None:
    """Once, by a commit without rows; then the source gets the column, and its rows have it."""
    shop = CapturedShop(server, tmp_path, "trips", index=index)
    server.execute("CREATE TABLE trips (id int PRIMARY KEY, n int)", "INSERT INTO trips VALUES (1, 1), (2, 2)")
    server.take("trips")
    shop.run(spark, "bootstrap")
    assert (shop.run(spark, "incremental").status, sees_something(shop)) == ("nothing_to_do", False)
    commits = len(shop.timeline.commits())

    server.versions.register("trips", Schema.of({"id": "int", "n": "long", "tip": "decimal(8,2)"}))
    assert sees_something(shop)
    report = shop.run(spark, "incremental")
    assert (report.status, report.counts.read) == ("succeeded", 0)
    assert (report.schema["added"], report.schema["widened"]) == (["tip"], ["n"])
    assert shop.in_lake(spark) == {(1,): {"id": 1, "n": 1, "tip": None}, (2,): {"id": 2, "n": 2, "tip": None}}
    assert (shop.run(spark, "incremental").status, sees_something(shop)) == ("nothing_to_do", False)
    (commit,) = shop.timeline.commits()[commits:]
    assert (commit.schema_version, commit.written) == (2, (0, 0, 0))

    server.execute("UPDATE trips SET n = 5 WHERE id = 1", "ALTER TABLE trips MODIFY n bigint, ADD tip decimal(8,2)")
    server.execute("UPDATE trips SET tip = 1.5, n = 5000000000 WHERE id = 2")
    shop.follow(spark)
    assert {key: row["tip"] for (key,), row in shop.in_lake(spark).items()} == {1: None, 2: row_of(shop, 2)["tip"]}
    assert shop.in_lake(spark)[2,]["n"] == 5000000000


def row_of(shop: CapturedShop, key: int) -> dict[str, object]:
    return shop.in_source()[key,]


def test_an_alter_without_rows_and_a_version_that_no_table_can_follow(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    """The dataset goes on, the commit says what does not fit, and a version that does makes it well."""
    shop = CapturedShop(server, tmp_path, "odd")
    server.execute("CREATE TABLE odd (id int PRIMARY KEY, n int)", "INSERT INTO odd VALUES (1, 1)")
    server.take("odd")
    shop.run(spark, "bootstrap")
    server.versions.register("odd", Schema.of({"id": "int", "n": "string", "late": "int"}))
    server.execute("UPDATE odd SET n = 2")
    report = shop.follow(spark)
    assert (report.counts.applied, report.schema["conflicts"]) == (1, [["n", "int", "string"]])
    assert shop.in_lake(spark) == {(1,): {"id": 1, "n": 2, "late": None}}

    for unfit in ({"id": "int", "N": "int"}, {"id": "int", "_lakehub_metadata": "string"}):
        server.versions.register("odd", Schema.of(unfit))
        report = shop.run(spark, "incremental")
        assert f"`{[*unfit][1]}`" in report.schema["refused"]
        assert not sees_something(shop)
    server.execute("UPDATE odd SET n = 3")
    assert (shop.follow(spark).counts.applied, shop.in_lake(spark)[1,]["n"]) == (1, 3)

    server.versions.register("odd", Schema.of({"late": "long", "id": "int", "n": "int"}))
    report = shop.run(spark, "incremental")
    assert (report.schema["conflicts"], "refused" in report.schema, report.schema["widened"]) == ([], False, ["late"])
    position = shop.timeline.checkpoint()
    assert position is not None
    assert position.position[SCHEMA_VERSION] == len(server.versions.known)
