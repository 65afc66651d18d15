"""A captured table that is truncated, of a dataset that follows that: the lake loses what was there then, and nothing that came since."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.following.source_looks import SourceLook
from tests.fuzz_seed import SEED
from tests.services.tapped_server import TappedServer, tapped_server
from tests.spark.captured_shop import SECRET, CapturedShop, PausedAfterEach

DATABASE = "lakehub_emptied"


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        yield tapped


def follow(shop: CapturedShop, spark: SparkSession) -> str:
    shop.server.take(shop.name, follows_truncate=True)
    return shop.run(spark, "incremental").status


@pytest.mark.parametrize("index", ["memory", "record_index"])
def test_a_truncate_deletes_what_was_there_and_late_events_bring_nothing_back(
    spark: SparkSession, server: TappedServer, tmp_path: Path, index: str
) -> None:
    shop = CapturedShop(server, tmp_path, "t", index=index)
    server.execute("CREATE TABLE t (id int PRIMARY KEY, n int)", "INSERT INTO t SELECT seq, 0 FROM seq_1_to_20")
    server.take("t", follows_truncate=True)
    shop.run(spark, "bootstrap")
    server.execute("UPDATE t SET n = 1 WHERE id < 5", "DELETE FROM t WHERE id = 7", "INSERT INTO t VALUES (30, 1)")
    follow(shop, spark)
    server.execute("UPDATE t SET n = 2 WHERE id = 1", "TRUNCATE TABLE t", "INSERT INTO t VALUES (2, 9), (40, 9)")
    assert follow(shop, spark) == "succeeded"
    assert shop.in_lake(spark) == shop.in_source() == {(2,): {"id": 2, "n": 9}, (40,): {"id": 40, "n": 9}}
    (deleting,) = [commit for commit in shop.timeline.commits() if commit.run.get("kind") == "emptied"]
    assert deleting.written.deletes == 20  # 20 of the load, without one, and another

    messages = server.messages("t")
    random.Random(SEED).shuffle(messages)
    server.write("t", *messages)
    shop.run(spark, "incremental")
    assert (shop.in_lake(spark), shop.run(spark, "incremental").status) == (shop.in_source(), "nothing_to_do")

    server.execute("TRUNCATE t")
    server.take("t", follows_truncate=True)
    url = server.url.render_as_string(hide_password=False)
    assert SourceLook().has_changes(shop.spec("incremental"), {SECRET: url}, now=datetime.now(UTC))
    shop.run(spark, "incremental")
    assert (shop.in_lake(spark), server.stopped) == ({}, {})
    server.execute("INSERT INTO t VALUES (2, 10)")
    follow(shop, spark)
    assert shop.in_lake(spark) == shop.in_source()

    server.execute("DROP TABLE t", "CREATE TABLE t (id int PRIMARY KEY, n int, city varchar(9))")
    server.execute("INSERT INTO t VALUES (3, 11, 'Ulm')")
    server.take("t", follows_drop=True)
    shop.run(spark, "incremental")
    assert shop.in_lake(spark) == shop.in_source() == {(3,): {"id": 3, "n": 11, "city": "Ulm"}}


def test_a_truncate_between_the_parts_of_a_load(spark: SparkSession, server: TappedServer, tmp_path: Path) -> None:
    """What was read before goes, what was read after stays, and the job that deletes it is told of it only later."""
    shop = CapturedShop(server, tmp_path, "parts")
    server.execute("CREATE TABLE parts (id int PRIMARY KEY, n int)", "INSERT INTO parts SELECT seq, 0 FROM seq_1_to_40")
    server.take("parts", follows_truncate=True)
    limits = {"commit_rows": 10, "chunk_rows": 10}
    shop.run(spark, "bootstrap", PausedAfterEach(), limits=limits)
    server.execute("TRUNCATE parts", "INSERT INTO parts SELECT seq, 1 FROM seq_5_to_30")
    assert shop.run(spark, "bootstrap", limits=limits).status == "succeeded"
    follow(shop, spark)
    assert shop.in_lake(spark) == shop.in_source()
