"""What MariaDB writes of columns that become narrower, of another primary key and of a table that is dropped, and what becomes of the capture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.tapped_server import TappedServer, tapped_server

NARROWER = {
    "big": ("bigint", "int", 5),
    "name": ("varchar(40)", "varchar(10)", "Ulm"),
    "code": ("char(200)", "char(20)", "x"),
    "fare": ("decimal(10,2)", "decimal(8,2)", "1.25"),
    "ratio": ("double", "float", 0.5),
    "at": ("datetime(6)", "datetime", "2026-11-27 08:00:00"),
    "note": ("text", "varchar(300)", "n"),
    "kind": ("enum('a','b')", "enum('b')", "b"),
    "flags": ("bit(9)", "bit(3)", 1),
}
"""By column: the type, a narrower one, and a value that both can have."""


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, "lakehub_altered", tmp_path / "log") as tapped:
        tapped.versions.keeps = True
        yield tapped


@pytest.mark.parametrize("name", NARROWER)
def test_a_narrower_column_is_followed_and_stops_where_that_is_wanted(server: TappedServer, name: str) -> None:
    wide, narrow, value = NARROWER[name]
    policies = {"trips": {}, "careful": {"stops_at_narrowing": True}}
    for table, options in policies.items():
        server.execute(
            f"CREATE TABLE {table} (id int PRIMARY KEY, `{name}` {wide})", f"INSERT INTO {table} VALUES (1, '{value}')"
        )
        if name == "flags":
            server.execute(f"UPDATE {table} SET flags = b'1'")
        server.take(table, **options)
    types = {each.subject: each.row_columns for each, _ in server.versions.known}
    for table, options in policies.items():
        server.execute(
            f"ALTER TABLE {table} MODIFY `{name}` {narrow}", f"INSERT INTO {table} SELECT 2, `{name}` FROM {table}"
        )
        server.take(table, **options)
    rows = server.replayed("trips")
    assert rows[(2,)] == rows[(1,)] | {"id": 2}
    assert {each.subject: each.row_columns for each, _ in server.versions.known} == types, "the wider type stays"
    assert ([*server.replayed("careful")], list(server.stopped)) == ([(1,)], ["careful"])
    assert f"has narrower columns than before: `{name}`" in server.stopped["careful"]


def test_another_primary_key_stops_the_table(server: TappedServer) -> None:
    server.execute("CREATE TABLE trips (id int, n int NOT NULL, PRIMARY KEY (id))", "INSERT INTO trips VALUES (1, 0)")
    server.take("trips", record_key=("id",))
    server.execute(
        "ALTER TABLE trips DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)", "INSERT INTO trips VALUES (1, 1), (2, 2)"
    )
    server.take("trips", record_key=("id",))
    assert [*server.replayed("trips")] == [(1,)]
    assert "primary key of `lakehub_altered.trips` was `id` and is `id`, `n`" in server.stopped["trips"]


def test_a_table_that_is_dropped_and_made_again_is_followed_where_that_is_wanted(server: TappedServer) -> None:
    server.execute("CREATE TABLE kept (id int PRIMARY KEY)", "INSERT INTO kept VALUES (1)")
    server.take("kept")
    server.execute("DROP TABLE kept", "CREATE TABLE kept (id int PRIMARY KEY)", "INSERT INTO kept VALUES (2)")
    server.take("kept")
    assert ([*server.replayed("kept")], "was dropped" in server.stopped["kept"]) == ([(1,)], True)
    begins = [
        "CREATE TABLE trips (id int PRIMARY KEY)",
        "CREATE OR REPLACE TABLE trips (id int PRIMARY KEY) SELECT 3 AS id",
    ]
    emptied = list[int]()
    for number, create in enumerate(begins, 1):
        drops = ["DROP TABLE IF EXISTS trips"] if number == 1 else []
        server.execute(*drops, create, f"INSERT INTO trips VALUES ({number})")
        server.take("trips", follows_drop=True)
        emptied.append(server.versions.emptied["trips"])
    assert emptied[0] < emptied[1]
    assert ([*server.replayed("trips")], "trips" in server.stopped) == ([(1,), (3,), (2,)], False)


def test_another_table_under_the_name_of_a_dropped_one_stops_the_capture(server: TappedServer) -> None:
    """Its rows were written before, under another name."""
    moves = {
        "renamed": "RENAME TABLE other TO renamed",
        "altered": "ALTER TABLE other RENAME altered",
        "parted": "ALTER TABLE parts CONVERT PARTITION p1 TO TABLE parted",
    }
    server.execute(
        "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p1 VALUES LESS THAN (9), PARTITION p2 VALUES LESS THAN (99))"
    )
    server.execute("INSERT INTO parts VALUES (2)")
    for table, move in moves.items():
        server.execute(f"CREATE TABLE {table} (id int PRIMARY KEY)", f"INSERT INTO {table} VALUES (1)")
        server.take(table, follows_drop=True)
        server.execute("CREATE TABLE IF NOT EXISTS other (id int PRIMARY KEY)", "REPLACE INTO other VALUES (2)")
        server.execute(f"DROP TABLE {table}", move, f"INSERT INTO {table} VALUES (3)")
        server.take(table, follows_drop=True)
        assert [*server.replayed(table)] == [(1,)]
        assert "Another table was given the name" in server.stopped[table]
