"""Columns of a captured table in the lake: those that nobody is to see, and those that get another name."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.capture.tap.hidden_columns import HiddenColumns
from ingestion.spark.changes import renaming
from ingestion.spark.contract.spec import ReplaySpec
from tests.fuzz_seed import SEED
from tests.services.tapped_server import TappedServer, tapped_server
from tests.spark.captured_shop import CapturedShop, PausedAfterEach

DATABASE = "lakehub_columns"


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        yield tapped


def as_in_source(shop: CapturedShop, spark: SparkSession) -> dict[Any, dict[str, Any]]:
    """The rows of the lake, with the columns that the source has now."""
    names = {name for row in shop.in_source().values() for name in row}
    return {key: {name: row[name] for name in names} for key, row in shop.in_lake(spark).items()}


@pytest.mark.parametrize("index", ["memory", "record_index"])
def test_a_renamed_column_has_what_the_old_one_had(
    spark: SparkSession, server: TappedServer, tmp_path: Path, index: str
) -> None:
    """Also in rows that are not written again, renamed twice, to a name that there was, and where two change their names."""
    shop = CapturedShop(server, tmp_path, "renamed", index=index)
    server.execute(
        "CREATE TABLE renamed (id int PRIMARY KEY, a varchar(9), b int, gone varchar(9), x int, y int)",
        "INSERT INTO renamed SELECT seq, concat('a', seq), seq, concat('g', seq), seq, 100 + seq FROM seq_1_to_40",
    )
    server.take("renamed")
    shop.run(spark, "bootstrap")
    server.execute(
        "UPDATE renamed SET a = 'before', x = 0 WHERE id = 1",
        "DELETE FROM renamed WHERE id = 2",
        "ALTER TABLE renamed RENAME COLUMN a TO name, CHANGE COLUMN `B` n bigint, ADD late int DEFAULT 7",
        "UPDATE renamed SET name = 'after' WHERE id = 3",
        "INSERT INTO renamed VALUES (41, NULL, NULL, 'g', 1, 1, 1)",
        "ALTER TABLE renamed RENAME COLUMN x TO y, RENAME COLUMN y TO x, DROP gone",
        "UPDATE renamed SET name = NULL, late = 1 WHERE id = 4",
    )
    report = shop.follow(spark)
    assert (report.counts.read, report.counts.applied) == (5, 5)
    lake, source = as_in_source(shop, spark), shop.in_source()
    assert {key: row | {"late": 0} for key, row in lake.items()} == {
        key: row | {"late": 0} for key, row in source.items()
    }
    assert lake[5,] == {"id": 5, "name": "a5", "n": 5, "late": None, "x": 105, "y": 5}
    old = {key: (row["a"], row["b"], row["gone"]) for (key,), row in shop.in_lake(spark).items()}
    assert (old[5], old[3], old[4]) == (("a5", 5, "g5"), (None, None, "g3"), (None, None, None))
    commits = len([*shop.timeline.commits()])
    server.execute(
        "UPDATE renamed SET name = 'again' WHERE id = 6",
        "ALTER TABLE renamed RENAME COLUMN name TO title",
        "ALTER TABLE renamed RENAME COLUMN title TO gone",
        "DELETE FROM renamed WHERE id = 7",
    )
    shop.follow(spark)
    assert as_in_source(shop, spark).keys() == shop.in_source().keys()
    assert {key: row["gone"] for key, row in as_in_source(shop, spark).items()} == {
        key: row["gone"] for key, row in shop.in_source().items()
    }
    assert len([*shop.timeline.commits()]) <= commits + 3
    once, messages = shop.in_lake(spark), server.messages("renamed")
    random.Random(SEED).shuffle(messages)
    server.write("renamed", *messages)
    assert shop.run(spark, "incremental").counts.errors == 0
    assert shop.in_lake(spark) == once


def test_a_rename_between_the_parts_of_a_load_is_made_once_also_where_a_job_dies(
    spark: SparkSession, server: TappedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made twice, two columns that have changed their names would be as before."""
    shop = CapturedShop(server, tmp_path, "swapped")
    server.execute(
        "CREATE TABLE swapped (id int PRIMARY KEY, x int, y int, a int)",
        "INSERT INTO swapped SELECT seq, seq, 100 + seq, seq FROM seq_1_to_30",
    )
    server.take("swapped")
    limits = {"commit_rows": 10, "chunk_rows": 10}
    assert shop.run(spark, "bootstrap", PausedAfterEach(), limits=limits).status == "paused"
    server.execute(
        "ALTER TABLE swapped RENAME COLUMN x TO y, RENAME COLUMN y TO x, RENAME COLUMN a TO b",
        "UPDATE swapped SET b = 0 WHERE id IN (1, 30)",
    )
    server.take("swapped")
    assert shop.run(spark, "bootstrap", limits=limits).status == "succeeded"
    writes = []

    def write_and_die(*arguments: Any) -> None:
        writes.append(arguments)
        write_commit(*arguments)
        raise OSError("the machine is gone")

    write_commit = renaming.hudi.write_commit
    with monkeypatch.context() as dying:
        dying.setattr(renaming.hudi, "write_commit", write_and_die)
        assert "the machine is gone" in str(shop.tried(spark, "incremental").error)
    assert len(writes) == 1
    shop.run(spark, "incremental")
    assert as_in_source(shop, spark) == shop.in_source()
    server.execute("UPDATE swapped SET x = -1 WHERE id = 2")
    shop.follow(spark)
    assert as_in_source(shop, spark) == shop.in_source()


def test_what_nobody_is_to_see_is_in_no_file_of_the_lake(
    spark: SparkSession, server: TappedServer, tmp_path: Path
) -> None:
    """By the load and by the log, in rows that are rejected, mended and published again."""
    hidden = HiddenColumns(frozenset(["place"]), frozenset(["email", "pin"]), frozenset(["phone"]), key="secret key")
    shop = CapturedShop(server, tmp_path, "hidden", options={**hidden.as_options(), "hash_key": hidden.key})
    shop.with_history()
    server.execute(
        "CREATE TABLE hidden (id int PRIMARY KEY, email varchar(40), pin int, phone varchar(40), place varchar(40), note varchar(9))",
        "INSERT INTO hidden SELECT seq, 'Geheim@example.org', 771234, '0731-5550', 'Zuhause', 'x' FROM seq_1_to_9",
    )
    server.take("hidden", hidden=hidden)
    shop.run(spark, "bootstrap")
    loaded = shop.in_lake(spark)
    server.execute(
        "UPDATE hidden SET note = 'y'",
        "INSERT INTO hidden SELECT 10, email, pin, phone, place, 'z' FROM hidden LIMIT 1",
    )
    shop.follow(spark, hidden=hidden)
    lake = shop.in_lake(spark)
    row = {"email": hidden.digest("Geheim@example.org"), "pin": hidden.digest(771234), "phone": None}
    assert lake == {(n,): {"id": n, **row, "note": "z" if n == 10 else "y"} for n in range(1, 11)}
    assert {key: each | {"note": ""} for key, each in loaded.items()} == {
        (n,): {"id": n, **row, "note": ""} for n in range(1, 10)
    }
    # Put aside before its columns were hidden, and mended by somebody who types what he sees.
    shown = {
        "id": 11,
        "email": "Geheim@example.org",
        "pin": 771234,
        "phone": "0731-5550",
        "place": "Zuhause",
        "note": "?",
    }
    shop.write_error(shown)
    assert shop.run(spark, "incremental").counts.errors == 1
    (rejected,) = shop.rejected(spark)
    fixes = {rejected["error_key"]: '{"note": "m"}'}
    assert shop.run(spark, "replay", replay=ReplaySpec(tuple(fixes), "ana", fixes)).counts.applied == 1
    shop.run(spark, "incremental")
    assert shop.in_lake(spark)[11,] == {"id": 11, **row, "note": "m"}
    secrets = (b"Geheim@example.org", b"771234", b"0731-5550", b"Zuhause")
    folders = [tmp_path / "lake" / "hidden", tmp_path / "lake" / "_history" / "hidden"]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert any(path.suffix == ".parquet" and path.is_relative_to(folders[1]) for path in files)
    everything = b"".join([*(path.read_bytes() for path in files), *server.messages("hidden")])
    assert not [secret for secret in secrets if secret in everything]
