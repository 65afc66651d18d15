"""Cursors as tables have them: dates alone, compact texts, sentinels, numbers among which a text strayed. No change is missed, and then it is quiet."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingestion.domain.batch_limits import UNLIMITED, BatchLimits
from ingestion.domain.checkpoint import Position
from ingestion.sources import SourceConfig, has_changes
from ingestion.sources.sql.source import SqlSource
from tests.contracts.test_bounded_sql import counted_statements

PIECES = BatchLimits(rows=2)
OVERLAP_S = 120.0


class Table:
    """orders(id, at), `at` of a type that the test says, in a file of SQLite."""

    def __init__(self, file: Path, type_: str) -> None:
        self._file = file
        self.run(f"create table orders(id integer primary key, at {type_})")
        self._config = SourceConfig(f"sqlite:///{file}", "orders", "at", OVERLAP_S, key_columns=("id",))
        self.source = SqlSource(self._config)

    def told_to(self, tell: Callable[[int], None]) -> SqlSource:
        """The same, which tells what it reads."""
        return SqlSource(replace(self._config, on_rows_read=tell))

    def run(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self._file)) as connection, connection:
            connection.execute(statement, values)

    def put(self, *ats: Any) -> None:
        for at in ats:
            self.run("insert into orders(at) values (?)", at)

    def load(self, limits: BatchLimits) -> tuple[list[Any], Position]:
        handed, after = [], None
        while True:
            reading = self.source.snapshot(after=after, limits=limits)
            handed += [value for batch in reading.batches for value in batch.columns["at"]]
            if not reading.has_more():
                return handed, reading.position()
            after = reading.position()

    def changes(self, position: Position) -> tuple[list[Any], Position]:
        reading = self.source.changes(position)
        return [value for batch in reading.batches for value in batch.columns["at"]], reading.position()


@pytest.mark.parametrize("limits", [UNLIMITED, PIECES], ids=["one piece", "pieces"])
@pytest.mark.parametrize(
    ("type_", "first", "later"),
    [
        ("date", ["2026-11-15", "2026-11-17"], "2026-11-16"),  # committed after midnight, within the overlap
        ("text", ["20261115", "20261117"], "20261116"),
        ("text", ["20261116T101112", "20261116T101412"], "20261116T101300"),
        ("text", ["2026-11-16T10:11:12Z", "2026-11-16T10:14:12Z"], "2026-11-16T10:13:00Z"),
        ("timestamp", ["0001-01-01 00:00:00", "2026-11-16 10:14:12"], "2026-11-16 10:13:00"),
        ("timestamp", ["0001-01-01T00:00:00+02:00", "2026-11-16 10:14:12"], "2026-11-16 10:13:00"),
        ("timestamp", ["9999-12-31T23:59:59-05:00", "2026-11-16 10:14:12"], "2026-11-16 10:13:00"),
        ("timestamp", ["0001-01-01 00:00:00"], "0001-01-01 00:00:30"),
        ("integer", ["n/a", 5, 6], 7),
        ("integer", [5, 6, "n/a"], 7),
    ],
)
def test_what_comes_later_is_handed_over_once(
    tmp_path: Path, type_: str, first: list[Any], later: Any, limits: BatchLimits
) -> None:
    table = Table(tmp_path / "shop.db", type_)
    table.put(*first)
    handed, position = table.load(limits)
    assert handed == first
    position = table.changes(position)[1]  # what changed while it was loaded in pieces
    assert not has_changes(table.source, position)
    table.put(later)
    assert has_changes(table.source, position)
    handed, position = table.changes(position)
    assert handed == [later]
    assert not has_changes(table.source, position)


def test_a_text_that_is_no_text_stops_no_reading(tmp_path: Path) -> None:
    """SQLite stores what it is given."""
    table = Table(tmp_path / "shop.db", "timestamp")
    table.put("2026-11-16 08:00:00")
    table.run("insert into orders(at) values (cast(x'ff41' as text))")
    handed, position = table.load(UNLIMITED)
    assert handed == ["2026-11-16 08:00:00", b"\xffA"]
    assert not has_changes(table.source, position)


def test_compact_texts_have_an_overlap_of_minutes(tmp_path: Path) -> None:
    """It was the whole year: each batch read and redelivered all of it."""
    table = Table(tmp_path / "shop.db", "text")
    table.put(*(f"202611{day:02}T101112" for day in range(1, 30)))
    position = table.load(UNLIMITED)[1]
    with counted_statements() as counted:
        rows: list[int] = []
        assert not has_changes(table.told_to(rows.append), position)
    assert (rows, len(counted)) == ([1], 1)


def test_rows_that_were_looked_at_only_are_told_too(tmp_path: Path) -> None:
    """The connection's rows per second count them."""
    table = Table(tmp_path / "shop.db", "timestamp")
    table.put(*["2026-11-16 08:00:00"] * 50)
    position, rows = table.load(UNLIMITED)[1], list[int]()
    assert not has_changes(table.told_to(rows.append), position)
    assert rows == [50]
