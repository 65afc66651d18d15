"""A table of MariaDB in the lake: its rows by a load, then every change of them by the binlog."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.changes.tombstones import read_tombstones
from tests.fuzz_seed import SEED
from tests.services.tapped_server import TappedServer, tapped_server
from tests.spark.captured_shop import CapturedShop, PausedAfterEach
from tests.spark.order_shop import read

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


def test_a_load_in_parts_while_the_table_is_written_loses_nothing(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    """Each part is another range of keys; what changes between them comes from the log, whichever part has read it."""
    shop = CapturedShop(server, tmp_path, "parts")
    server.execute("CREATE TABLE parts (id int PRIMARY KEY, n int)", "INSERT INTO parts SELECT seq, 0 FROM seq_1_to_40")
    server.take("parts")
    changes = [
        "UPDATE parts SET n = n + 1 WHERE id %% 2",
        "DELETE FROM parts WHERE id %% 5 = 0",
        "INSERT INTO parts VALUES (0, 7)",
    ]
    limits = {"commit_rows": 10, "chunk_rows": 10}
    for change in changes:
        assert shop.run(spark, "bootstrap", PausedAfterEach(), limits=limits).status == "paused"
        server.execute(change)
    server.take("parts")
    assert shop.run(spark, "bootstrap", limits=limits).status == "succeeded"
    shop.follow(spark)
    assert shop.in_lake(spark) == shop.in_source()


def test_columns_come_and_go_with_the_table(spark: SparkSession, server: TappedServer, tmp_path: Path) -> None:
    """A column that is dropped stays, and is null from then on; one that is renamed is another."""
    shop = CapturedShop(server, tmp_path, "evolving")
    server.execute("CREATE TABLE evolving (id int PRIMARY KEY, a int, b int, c varchar(9))")
    server.execute("INSERT INTO evolving VALUES (1, 1, 1, 'x'), (2, 2, 2, 'y'), (3, 3, 3, 'z')")
    server.take("evolving")
    shop.run(spark, "bootstrap")
    server.execute(
        "ALTER TABLE evolving ADD d decimal(5,1)",
        "UPDATE evolving SET d = 1.5 WHERE id = 1",
        "ALTER TABLE evolving DROP b, CHANGE c e varchar(20), MODIFY a bigint",
        "UPDATE evolving SET a = 5000000000 WHERE id = 2",
        "INSERT INTO evolving VALUES (4, 4, 'new', NULL)",
    )
    report = shop.follow(spark)
    assert (report.counts.applied, sorted(report.schema["added"]), report.schema["widened"]) == (
        3,
        ["d", "e"],
        ["a"],
    )
    rows = {key: tuple(str(row[name]) for name in "abcde") for (key,), row in shop.in_lake(spark).items()}
    assert rows == {
        1: ("1", "1", "x", "1.5", "None"),
        2: ("5000000000", "None", "None", "None", "y"),
        3: ("3", "3", "z", "None", "None"),
        4: ("4", "None", "None", "None", "new"),
    }
    server.execute("UPDATE evolving SET d = 2 WHERE id = 4")
    assert shop.follow(spark).counts.applied == 1


AWKWARD = """
    u bigint unsigned, d decimal(20,4), w decimal(5,0), at datetime(6), ts timestamp(3) NULL, on_day date, t time(2),
    e enum('a','ü','zz'), s set('x','y','z'), b bit(1), bits bit(12), flag bool, j json, body blob, txt text CHARACTER SET latin1,
    emoji varchar(20) CHARACTER SET utf8mb4, f float, dbl double, y year, bin binary(4), PRIMARY KEY (u, emoji)
"""


def test_awkward_types_are_the_same_by_the_load_and_by_the_log(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    """Each row is there twice: read by the load, and captured when it is written again as it is. Only its metadata tells the two apart."""
    shop = CapturedShop(server, tmp_path, "awkward", ("u", "emoji"))
    server.execute(
        "SET SESSION sql_mode = ''",
        f"CREATE TABLE awkward ({AWKWARD})",
        """INSERT INTO awkward VALUES
            (18446744073709551615, 1234567890123456.7891, -7, '2026-11-26 08:00:00.000001', '2026-10-25 01:30:00.125', '1000-01-01', '-12:00:00.5', 'ü', 'x,z',
             1, b'111100001111', 1, '{"a": [1, "é"]}', x'00ff', 'é', '😀', 1.1, 1e300, 2026, x'01020304'),
            (0, 0, 99999, '0000-00-00', NULL, '0000-00-00', '838:59:59.99', 'zz', '', 0, 0, 0, '[]', '', '', 'b', -0.0, -0.0, 1901, x'00000000'),
            (1, NULL, NULL, '9999-12-31 23:59:59.999999', NULL, '9999-12-31', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'ß', NULL, NULL, NULL, NULL)""",
    )
    server.take("awkward", record_key=shop.record_key)
    shop.run(spark, "bootstrap")
    loaded = shop.in_lake(spark)
    assert [len(loaded), sum(row["at"] is None for row in loaded.values())] == [3, 1]
    server.execute("UPDATE awkward SET flag = NOT flag, y = 2000", "UPDATE awkward SET flag = NOT flag, y = 2001")
    assert shop.follow(spark, record_key=shop.record_key).counts.read == 6
    captured = shop.in_lake(spark)
    assert {row["y"] for row in captured.values()} == {2001}
    assert {key: row | {"y": 0} for key, row in captured.items()} == {
        key: row | {"y": 0} for key, row in loaded.items()
    }


def test_messages_that_are_no_events_are_in_the_error_table_and_all_else_in_the_lake(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    """Among them what the tap could not encode. The sum holds, and no message is rejected twice."""
    shop = CapturedShop(server, tmp_path, "noisy", told=timedelta(minutes=2))
    server.execute("CREATE TABLE noisy (id int PRIMARY KEY, n int)", "INSERT INTO noisy VALUES (1, 1)")
    server.take("noisy")
    shop.run(spark, "bootstrap")
    server.execute("UPDATE noisy SET n = 2")
    server.take("noisy")
    server.write("noisy", b"", b"{", b"\x00\x7f\xff\xff\xffabc", b"\x00\x00\x00\x00\x01\x02")
    server.write(
        "noisy.errors", b'{"defect": "type", "reason": "n is no number", "column": "n", "after": {"id": 7}}', b"?"
    )
    server.execute("INSERT INTO noisy VALUES (2, 2)")
    report = shop.follow(spark)
    assert (report.counts.read, report.counts.applied, report.counts.errors) == (8, 2, 6)
    assert shop.in_lake(spark) == shop.in_source()
    rejected = read(spark, shop.table.error_uri).select("column", "reason", "source").collect()
    assert len(rejected) == 6
    assert ("n", "n is no number", "noisy.errors:0:0") in {tuple(row) for row in rejected}
    assert sum("no schema with the id" in row["reason"] for row in rejected) == 1
    assert shop.follow(spark).status == "nothing_to_do"


def test_events_that_come_again_in_any_order_change_nothing(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    """Rows that were deleted stay so, although the table does not have them any more."""
    shop = CapturedShop(server, tmp_path, "again")
    server.execute("CREATE TABLE again (id int PRIMARY KEY, n int)", "INSERT INTO again SELECT seq, 0 FROM seq_1_to_9")
    server.take("again")
    shop.run(spark, "bootstrap")
    server.execute(
        "DELETE FROM again WHERE id < 5",
        "INSERT INTO again VALUES (1, 1), (20, 1)",
        "UPDATE again SET n = 2 WHERE id = 5",
        "DELETE FROM again WHERE id = 20",
        "UPDATE again SET id = 21 WHERE id = 9",
    )
    shop.follow(spark)
    once = shop.in_lake(spark)
    assert once == shop.in_source()
    messages = server.messages("again")
    random.Random(SEED).shuffle(messages)
    server.write("again", *messages)
    report = shop.run(spark, "incremental")
    assert (report.counts.read, report.counts.errors) == (len(messages), 0)
    assert shop.in_lake(spark) == once
    server.execute("INSERT INTO again VALUES (2, 2), (20, 2)")
    shop.follow(spark)
    assert shop.in_lake(spark) == shop.in_source()
