"""The history of a captured table: each version of its rows once, and each row as it was at any time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.domain.schema import Schema
from ingestion.lake.captured.histories import kept_since
from ingestion.spark.changes import history
from ingestion.spark.tables import hudi
from ingestion.spark.tables.timeline import Timeline
from lakehub.kernel import failpoint
from tests.services.tapped_server import TappedServer, tapped_server
from tests.spark.captured_shop import CapturedShop
from tests.spark.order_shop import read

DATABASE = "lakehub_history"
DOCS = Path(__file__).parents[2] / "docs" / "change-capture.md"


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        yield tapped


class Killed(Exception):
    """In place of the process."""


def versions(spark: SparkSession, shop: CapturedShop) -> list[dict[str, Any]]:
    """By time, without what every row of a Hudi table has."""
    rows = [row.asDict(recursive=True) for row in read(spark, shop.table.history_uri).collect()]
    plain = [
        {name.removeprefix("_lakehub_"): value for name, value in row.items() if not name.startswith("_hoodie")}
        for row in rows
    ]
    return sorted(plain, key=lambda row: (row["reference_key"], row["position"], row["id"]))


def commits(uri: str) -> int:
    return len(Timeline(uri).completed())


def as_it_was(spark: SparkSession, shop: CapturedShop, at: datetime) -> dict[int, str | None]:
    """By the query of the documentation."""
    query = re.search(r"```sql\n(-- Each row as it was.*?)```", DOCS.read_text(), re.DOTALL)
    assert query is not None
    for name, uri in (("trips_history", shop.table.history_uri), ("trips", shop.table.uri)):
        read(spark, uri).createOrReplaceTempView(name)
    text = query[1].replace("2026-11-27 09:00:00", f"{at:%Y-%m-%d %H:%M:%S.%f}")
    return {row["id"]: row["city"] for row in spark.sql(text).collect()}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def change(server: TappedServer, when: str, *statements: str) -> None:
    """As if it were made then."""
    server.execute(f"SET timestamp = {at(when).timestamp()}", *statements)


def die_after_history(name: str) -> None:
    if name == "ingestion.after_history":
        raise Killed


def test_each_version_is_there_once_and_tells_each_row_as_it_was(
    spark: SparkSession, server: TappedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a job that is killed between the two commits, of messages that come again, and of a table that gets a column."""
    shop = CapturedShop(server, tmp_path, "trips").with_history()
    server.execute("CREATE TABLE trips (id int PRIMARY KEY, city varchar(9))")
    server.execute("INSERT INTO trips VALUES (1, 'Ulm'), (2, 'Bonn'), (3, 'Kiel'), (4, 'Hof')")
    server.take("trips")
    shop.run(spark, "bootstrap")
    assert not Timeline(shop.table.history_uri).exists
    change(
        server,
        "2030-01-01 09:00",
        "UPDATE trips SET city = 'Köln' WHERE id = 1",
        "UPDATE trips SET city = 'Jena' WHERE id = 1",
    )
    change(server, "2030-01-02 09:00", "DELETE FROM trips WHERE id = 2", "INSERT INTO trips VALUES (5, NULL)")
    server.take("trips")
    with monkeypatch.context() as patched:
        patched.setattr(failpoint, "reach", die_after_history)
        shop.tried(spark, "incremental")
    assert (len(versions(spark, shop)), shop.in_lake(spark)[1,]["city"]) == (6, "Ulm")
    change(
        server,
        "2030-01-03 09:00",
        "ALTER TABLE trips ADD fare decimal(5,1)",
        "UPDATE trips SET city = 'Rom', fare = 2.5 WHERE id = 3",
    )
    server.take("trips")
    shop.run(spark, "incremental")
    server.write("trips", *server.messages("trips")[4:])
    assert shop.run(spark, "incremental").counts.errors == 0
    change(server, "2030-01-04 09:00", "INSERT INTO trips VALUES (2, 'Oslo', 1)")
    shop.follow(spark)
    assert shop.in_lake(spark) == shop.in_source()
    kept = versions(spark, shop)
    assert [(row["id"], row["city"], row["fare"] and float(row["fare"]), row["is_deleted"], row["is_snapshot"], row["day"]) for row in kept] == [
        (1, "Ulm", None, False, True, "2030-01-01"),
        (2, "Bonn", None, False, True, "2030-01-02"),
        (3, "Kiel", None, False, True, "2030-01-03"),
        (1, "Köln", None, False, False, "2030-01-01"),
        (1, "Jena", None, False, False, "2030-01-01"),
        (2, None, None, True, False, "2030-01-02"),
        (5, None, None, False, False, "2030-01-02"),
        (3, "Rom", 2.5, False, False, "2030-01-03"),
        (2, "Oslo", 1.0, False, False, "2030-01-04"),
    ]  # fmt: skip
    assert [row["schema_version"] for row in kept] == [1] * 7 + [2] * 2
    cities = {
        "2030-01-01 08:00": {1: "Ulm", 2: "Bonn", 3: "Kiel", 4: "Hof"},
        "2030-01-01 10:00": {1: "Jena", 2: "Bonn", 3: "Kiel", 4: "Hof"},
        "2030-01-02 10:00": {1: "Jena", 3: "Kiel", 4: "Hof", 5: None},
        "2030-01-05 10:00": {1: "Jena", 2: "Oslo", 3: "Rom", 4: "Hof", 5: None},
    }
    assert {when: as_it_was(spark, shop, at(when)) for when in cities} == cities
    since = kept_since(shop.table.history_uri)
    assert since is not None
    assert since < datetime.now(UTC)
    shop.run(spark, "drop")
    assert not Timeline(shop.table.history_uri).exists


def test_it_is_made_when_it_is_set_to_on_and_costs_nothing_before(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    """While it is off nothing is kept, and rows that were changed then come into it with their next change."""
    shop = CapturedShop(server, tmp_path, "trips")
    server.execute(
        "CREATE TABLE trips (id int PRIMARY KEY, city varchar(9))", "INSERT INTO trips VALUES (1, 'a'), (2, 'a')"
    )
    server.take("trips")
    shop.run(spark, "bootstrap")
    off = shop.table
    lake = tmp_path / "lake"
    for day, city, keeps in ((1, "b", False), (2, "c", True), (3, "d", False), (4, "e", True), (5, "f", True)):
        shop.table = off if not keeps else shop.with_history().table
        jobs, made = _jobs_begun(spark), commits(shop.table.uri)
        change(server, f"2030-01-0{day} 09:00", f"UPDATE trips SET city = '{city}' WHERE id = 1")
        shop.follow(spark)
        assert commits(shop.table.uri) == made + 1
        if day in (1, 5):
            assert _jobs_begun(spark) == jobs  # the first commit of a history is Spark's, to make its table
        assert (lake / "_history").exists() == (day > 1)
    kept = versions(spark, shop)
    assert [(row["city"], row["is_snapshot"]) for row in kept] == [
        ("b", True), ("c", False), ("d", True), ("e", False), ("f", False),
    ]  # fmt: skip
    assert commits(shop.table.history_uri) == 4  # one makes the table


def die_making(spark: SparkSession, shop: CapturedShop) -> None:
    """Its first commit was begun, and has not ended."""
    spec = history.history_table_spec(shop.table)
    columns = hudi.empty_frame(spark, Schema.of({"_lakehub_version": "string", "_lakehub_day": "string"}))
    hudi.write_commit(columns, spec, "upsert", {"hoodie.metadata.enable": "false"}, {})
    (commit,) = Timeline(spec.uri).completed()
    (shop.folder / "lake" / "_history" / shop.name / ".hoodie" / "timeline" / commit.name).unlink()


def test_days_that_nobody_can_ask_for_are_removed(
    spark: SparkSession, server: TappedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = CapturedShop(server, tmp_path, "trips").with_history(history_days=30)
    server.execute(
        "CREATE TABLE trips (id int PRIMARY KEY, city varchar(9))", "INSERT INTO trips VALUES (1, 'a'), (2, 'a')"
    )
    server.take("trips")
    shop.run(spark, "bootstrap")
    die_making(spark, shop)
    now = datetime.now(UTC)
    for days_ago in (68, 66, 1):
        change(
            server,
            f"{now - timedelta(days=days_ago):%Y-%m-%d %H:%M}",
            f"UPDATE trips SET city = '{days_ago}' WHERE id = 1",
        )
    monkeypatch.setattr(history, "_was_written_on", lambda uri, now: True)
    shop.follow(spark)
    assert {row["city"] for row in versions(spark, shop)} == {"a", "68", "66", "1"}
    monkeypatch.setattr(history, "_was_written_on", lambda uri, now: False)  # as if that were a day ago
    server.execute("UPDATE trips SET city = 'now' WHERE id = 2")
    shop.follow(spark)
    left = [(row["id"], row["city"]) for row in versions(spark, shop)]
    assert sorted(left) == [(1, "1"), (1, "66"), (2, "a"), (2, "now")]
    server.execute("UPDATE trips SET city = 'later' WHERE id = 2")
    made = commits(shop.table.history_uri)
    shop.follow(spark)
    assert commits(shop.table.history_uri) == made + 1  # nothing is old any more


def _jobs_begun(spark: SparkSession) -> int:
    """By Spark, of this session so far."""
    context: Any = spark.sparkContext
    return int(context._jsc.sc().dagScheduler().nextJobId())
