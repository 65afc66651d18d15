"""Rows that only their content tells apart, too many of them to remember: without a watermark, or sharing the last one. None is missed, and then it is quiet."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.batch_limits import UNLIMITED, BatchLimits
from ingestion.domain.checkpoint import Position
from ingestion.sources import SourceConfig, SourceReading, has_changes
from ingestion.sources.sql import watermark
from ingestion.sources.sql.content_checks import ContentChecks
from ingestion.sources.sql.source import SqlSource
from ingestion.sources.sql.table import Page, SqlTable
from ingestion.sources.sql.watermark import MAX_REMEMBERED_HASHES
from tests.contracts.test_bounded_sql import counted_statements

Row = tuple[int, str, Any]
MANY = MAX_REMEMBERED_HASHES + 3000
LIMITS = st.one_of(st.just(UNLIMITED), st.integers(1, 6).map(lambda rows: BatchLimits(rows=rows)))
FIRST_AT = "2026-11-16 08:00:00"


class Table:
    """orders(id, note, at) in a file of SQLite."""

    def __init__(self, folder: Path, *, pages: int = 1000, overlap_s: float = 0.0) -> None:
        self._file = folder / "shop.db"
        with self.opened() as connection:
            connection.execute("create table orders(id integer primary key, note text, at timestamp)")
        self.config = SourceConfig(f"sqlite:///{self._file}", "orders", "at", overlap_s, pages)

    @contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._file)) as connection, connection:
            yield connection

    def put(self, *rows: Row) -> None:
        with self.opened() as connection:
            connection.executemany("insert or replace into orders values (?, ?, ?)", rows)

    def delete(self, id_: int) -> None:
        with self.opened() as connection:
            connection.execute("delete from orders where id = ?", [id_])

    def rows(self) -> dict[int, Row]:
        with self.opened() as connection:
            return {row[0]: row for row in connection.execute("select * from orders")}

    def read(self, position: Position, limits: BatchLimits = UNLIMITED) -> tuple[list[Row], Position, bool]:
        reading = SqlSource(self.config).changes(json.loads(json.dumps(position)), limits=limits)
        return rows_of(reading), reading.position(), reading.has_more()

    def start(self) -> Position:
        reading = SqlSource(self.config).snapshot()
        rows_of(reading)
        return reading.position()


@pytest.fixture(params=[0.0, 120.0], ids=["no overlap", "overlap"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return Table(tmp_path, overlap_s=request.param)


def crowd(at: Any, count: int = MANY) -> list[Row]:
    return [(number, "as it was", at) for number in range(count)]


@pytest.mark.parametrize("at", [None, "garbage"])
def test_rows_without_a_watermark_are_handed_over_once_however_many(table: Table, at: Any) -> None:
    """As where `updated_at` is null until the first update. Each look found something, and each batch read it again."""
    table.put(*crowd(at), (MANY, "in order", FIRST_AT))
    start = table.start()
    assert not has_changes(SqlSource(table.config), start)
    assert table.read(start) == ([], start, False)


@pytest.mark.parametrize("at", [None, "garbage", FIRST_AT])
def test_rows_that_are_looked_at_only_are_told_piece_by_piece(table: Table, at: Any) -> None:
    """A job pays for them and looks at its deadline meanwhile: millions were one payment at the end, which no job lived to see."""
    table.put(*crowd(at), (MANY, "in order", FIRST_AT))
    start, pieces = table.start(), list[int]()
    table.config = replace(table.config, on_rows_read=pieces.append)
    assert table.read(start)[0] == []
    assert (sum(pieces) >= MANY, max(pieces)) == (True, 1000)


def test_nothing_but_rows_without_a_watermark(table: Table) -> None:
    table.put(*crowd(None))
    start = table.start()
    assert table.read(start) == ([], start, False)


@pytest.mark.parametrize("at", [None, "garbage", FIRST_AT])
@pytest.mark.parametrize(
    "row", [(7, "changed", ...), (MANY + 7, "new", ...), (7, "updated", "2026-11-16 08:00:30")], ids=str
)
def test_what_is_new_comes_with_few_of_the_others(table: Table, at: Any, row: Row) -> None:
    """Those of the parts where it lies. All that were not remembered came again, with each change."""
    table.put(*crowd(at), (MANY, "in order", FIRST_AT))
    start = table.start()
    row = (row[0], row[1], at if row[2] is ... else row[2])
    table.put(row)
    handed, position, _ = table.read(start)
    assert row in handed
    assert len(handed) < 2 * MANY / 100
    assert table.read(position)[0] == []


def test_a_row_that_is_gone_makes_no_look_find_something_for_ever(table: Table) -> None:
    table.put(*crowd(None), (MANY, "in order", FIRST_AT))
    start = table.start()
    table.delete(7)
    handed, position, _ = table.read(start)
    assert len(handed) < MANY / 100
    assert table.read(position)[0] == []


@pytest.mark.parametrize("at", [None, "garbage", FIRST_AT])
def test_a_position_of_before_is_read(table: Table, at: Any) -> None:
    """Of the crowd it has one sum for all, of the others none: they come once more."""
    table.put(*crowd(at), (MANY, "in order", FIRST_AT))
    start = table.start()
    old = {name: value for name, value in start.items() if name != "unordered"}
    if "crowd" in old:
        old["crowd"] = {name: value for name, value in old["crowd"].items() if name != "parts"}
    handed, position, _ = table.read(old)
    assert len(handed) == (0 if at == FIRST_AT else MANY - MAX_REMEMBERED_HASHES)
    assert position == start
    table.put((7, "changed", at))
    assert (7, "changed", at) in table.read(old)[0]


def test_small_readings_hand_them_over_with_the_last_one(table: Table) -> None:
    table.put(*crowd(None), (MANY, "in order", FIRST_AT))
    position, has_more, sizes = table.start(), True, []
    table.put(
        (7, "changed", None), *((MANY + number, "new", f"2026-11-16 08:10:{number:02}") for number in range(1, 7))
    )
    while has_more:
        handed, position, has_more = table.read(position, BatchLimits(rows=2))
        sizes.append(len(handed))
        assert ((7, "changed", None) in handed) is not has_more
    assert sizes[:-1] == [2] * (len(sizes) - 1)
    assert table.read(position)[0] == []


def test_a_row_without_a_watermark_that_is_as_it_once_was_comes_again(table: Table) -> None:
    """Beside a crowd that stays the same: what was remembered of the row before it changed was kept, so that it counted as handed over."""
    table.put(*crowd(FIRST_AT), (MANY, "on", None))
    position = table.start()
    for note in ("off", "on", "off"):
        table.put((MANY, note, None))
        handed, position, _ = table.read(position)
        assert handed == [(MANY, note, None)]


def test_a_row_without_a_watermark_that_changes_back_between_small_readings_is_not_missed(table: Table) -> None:
    table.put((MANY, "on", None), (0, "in order", FIRST_AT))
    position, copy, has_more, notes = table.start(), "on", True, iter(["off", "on", "off", "on", "off", "on"])
    table.put(*((number, "new", f"2026-11-16 08:10:{number:02}") for number in range(1, 7)))
    while has_more:
        table.put((MANY, next(notes), None))
        handed, position, has_more = table.read(position, BatchLimits(rows=2))
        copy = next((note for id_, note, _ in handed if id_ == MANY), copy)
    assert copy == table.rows()[MANY][1]


def test_small_readings_after_a_load_in_several_commits_hand_them_over_once(table: Table) -> None:
    """Its position remembers none of the rows; each of the small readings brought all that were too many to remember."""
    table.put(*crowd(None), (MANY, "in order", FIRST_AT))
    table.put(*((MANY + number, "new", f"2026-11-16 08:10:{number:02}") for number in range(1, 7)))
    position, has_more, handed = {"watermark": None, "seen": []}, True, list[Row]()
    while has_more:
        rows, position, has_more = table.read(position, BatchLimits(rows=2))
        handed += rows
    assert sorted(row[0] for row in handed) == list(range(MANY + 7))


class Looks:
    """Of one process, at the times that `now` says. Each tells whether there is something new, how many rows were fetched and how many statements made."""

    def __init__(self, table: Table) -> None:
        self.now, self.source = 0.0, SqlSource(table.config, lambda: self.now)

    def look(self, position: Position) -> tuple[bool, int, int]:
        fetched, pages = 0, SqlTable.pages

        def counted_pages(*args: Any) -> Iterator[Page]:
            nonlocal fetched
            for page in pages(*args):
                fetched += len(page.rows)
                yield page

        with patch.object(SqlTable, "pages", counted_pages), counted_statements() as statements:
            is_new = has_changes(self.source, json.loads(json.dumps(position)))
        return is_new, fetched, len(statements)


@pytest.mark.parametrize("at", [None, FIRST_AT])
def test_most_empty_looks_count_the_rows_and_fetch_few(table: Table, at: Any) -> None:
    """A nightly load with one time for all rows: each look read them all (200,000 of them: more than a second every five seconds)."""
    table.put(*crowd(at), (MANY, "in order", FIRST_AT))
    position, looks = table.start(), Looks(table)
    assert looks.look(position)[:2] == (False, MANY + 1)
    for second in (5, 10, 15, 20, 25):
        looks.now = second
        is_new, fetched, statements = looks.look(position)
        assert (is_new, statements) == (False, 2)
        assert fetched <= 1
    looks.now = 26
    assert looks.look(position)[:2] == (False, MANY + 1), "two hundred are compared in a second"
    looks.now = 31
    assert looks.look(position)[2] == 2


@pytest.mark.parametrize("at", [None, FIRST_AT])
def test_a_new_row_is_found_at_once_and_a_changed_one_when_it_is_time(table: Table, at: Any) -> None:
    table.put(*crowd(at), (MANY, "in order", FIRST_AT))
    position, looks = table.start(), Looks(table)
    looks.look(position)
    table.put((7, "changed", at))
    assert not looks.look(position)[0]
    assert (7, "changed", at) in table.read(position)[0], "a job compares them each time"
    looks.now = 26
    assert looks.look(position)[0]
    looks = Looks(table)
    _, position, _ = table.read(position)
    looks.look(position)
    table.put((MANY + 1, "new", at))
    assert looks.look(position)[0]


def test_what_is_in_order_is_found_at_once(table: Table) -> None:
    table.put(*crowd(FIRST_AT))
    position, looks = table.start(), Looks(table)
    looks.look(position)
    table.put((7, "updated", "2026-11-16 08:00:01"))
    assert looks.look(position)[0]


def test_another_position_is_compared_at_once(table: Table) -> None:
    """Somebody has loaded the copy anew."""
    table.put(*crowd(None), (MANY, "in order", FIRST_AT))
    position, looks = table.start(), Looks(table)
    looks.look(position)
    table.put((7, "changed", None))
    assert not looks.look(table.start())[0]
    assert looks.look(position)[0]


def test_however_many_there_are_they_are_compared_once_an_hour() -> None:
    now = 0.0
    checks = ContentChecks(lambda: now)
    checks.note({}, 10_000_000)
    now = 3599.0
    assert not checks.is_due({})
    now = 3600.0
    assert checks.is_due({})


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["none", "garbage", "shared", "later", "delete"]), st.integers(0, 12), st.text("ab", max_size=2)
    ),
    max_size=6,
)


@given(
    remembered=st.integers(1, 3),
    pages=st.integers(1, 4),
    overlap=st.sampled_from([0.0, 3.0]),
    rounds=st.lists(st.tuples(CHANGES, LIMITS), max_size=5),
)
def test_the_copy_is_the_table_whatever_changes_and_however_few_are_remembered(
    remembered: int, pages: int, overlap: float, rounds: Sequence[tuple[list[tuple[str, int, str]], BatchLimits]]
) -> None:
    with TemporaryDirectory() as folder, patch.object(watermark, "MAX_REMEMBERED_HASHES", remembered):
        table, second, copy = Table(Path(folder), pages=pages, overlap_s=overlap), 0, dict[int, Row]()
        position = table.start()
        for changes, limits in rounds:
            for how, id_, note in changes:
                second += how == "later"
                at = {"none": None, "garbage": "zzz"}.get(how, f"2026-11-16 08:00:{second:02}")
                if how == "delete":
                    table.delete(id_)
                else:
                    table.put((id_, note, at))
            handed, position, _ = table.read(position, limits)
            copy |= {row[0]: row for row in handed}
        has_more = True
        while has_more:
            handed, position, has_more = table.read(position, BatchLimits(rows=2))
            copy |= {row[0]: row for row in handed}
        assert {id_: copy.get(id_) for id_ in table.rows()} == table.rows()
        assert not has_changes(SqlSource(table.config), position)


def rows_of(reading: SourceReading) -> list[Row]:
    columns = ("id", "note", "at")
    return [row for batch in reading.batches for row in zip(*(batch.columns[name] for name in columns), strict=True)]
