"""Whoever reads the changelog has the source's table, in whatever database, although tap and consumer were killed and begun anew."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from ingestion.capture.tap import tap as module
from ingestion.heatpipe.decoder import Decoder
from tests.fuzz_seed import REPEAT, SEED
from tests.services.changelog_consumer import consume
from tests.services.tapped_server import TappedServer, tapped_server

DATABASE = "lakehub_consumer"
CREATE = "CREATE TABLE {} (id int, region varchar(5), city varchar(40), fare decimal(8,2), PRIMARY KEY (id, region))"


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        yield tapped


@pytest.fixture
def target(postgresql_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS lakehub_consumer CASCADE")
        connection.execute("CREATE SCHEMA lakehub_consumer")
        connection.execute("SET search_path TO lakehub_consumer")
        connection.execute(CREATE.format("trips"))
        connection.execute("CREATE TABLE offsets (topic text PRIMARY KEY, next bigint NOT NULL)")
        yield connection
        connection.execute("DROP SCHEMA lakehub_consumer CASCADE")


def changes(chance: random.Random) -> Iterator[str]:
    """Keys that come, go, come again and become others."""
    for _ in range(chance.randint(1, 12)):
        key, region, fare = chance.randint(1, 30), chance.choice(["eu", "us"]), chance.randint(0, 99_999) / 100
        yield chance.choice(
            [
                f"REPLACE INTO trips VALUES ({key}, '{region}', 'Ort {fare}', {fare})",
                f"UPDATE trips SET fare = {fare} WHERE id < {key}",
                f"UPDATE IGNORE trips SET id = id + 1 WHERE id = {key}",
                f"DELETE FROM trips WHERE id = {key}",
                f"INSERT IGNORE INTO trips SELECT seq, '{region}', NULL, {fare} FROM seq_1_to_{key}",
            ]
        )


def rows(connection: psycopg.Connection) -> set[tuple[object, ...]]:
    return set(connection.execute("SELECT id, region, city, fare FROM trips"))


def test_a_topic_replayed_into_postgresql_is_the_source(
    server: TappedServer, target: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(SEED)
    decoder = Decoder("trips", ("id", "region"), bytes, server.versions.of_id)
    server.execute(CREATE.format("trips"))
    for _ in range(8):
        monkeypatch.setattr(module, "MAX_PENDING", chance.choice([3, 10_000]))
        server.execute("BEGIN", *changes(chance), chance.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
        steps = chance.randint(0, 3)
        with server.tap("trips") as killed:
            for _ in range(steps):
                killed.step()
        if chance.random() < 0.5:
            server.take("trips")
        consume(server.log.reader(), decoder, "trips", target, at_most=chance.randint(1, 40))
    server.take("trips")
    while consume(server.log.reader(), decoder, "trips", target, at_most=100):
        pass
    source = {(row["id"], row["region"], row["city"], row["fare"]) for row in server.all_rows("trips")}
    assert rows(target) == source, REPEAT
    assert server.stopped == {}, REPEAT
